// SPDX-License-Identifier: MIT
#include "quantity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "memory.h"

// So that now + a time stays far from INT64_MAX ns.
enum { MAX_TIME_S = 1000000000 };

const char *quantity_parse_decimal(const char *text, double *ret)
{
	size_t whole = strspn(text, "0123456789");
	size_t length = whole;
	size_t fraction = 0;

	if (text[length] == '.') {
		fraction = strspn(text + length + 1, "0123456789");
		length += 1 + fraction;
	}
	if (whole + fraction == 0)
		return NULL;

	_cleanup_free_ char *number = memory_strndup(text, length);
	*ret = strtod(number, NULL);
	return text + length;
}

// The nanoseconds of a unit of time, such as "ms" or "min"; 0: it is none.
static double unit_ns(const char *unit, size_t length)
{
	static const struct {
		const char *names; // each between spaces
		double ns;
	} units[] = {
	    {" ms msec millisecond milliseconds ", 1e6},
	    {" s sec secs second seconds ", 1e9},
	    {" m min mins minute minutes ", 60e9},
	    {" h hr hrs hour hours ", 3600e9},
	    {" d day days ", 86400e9},
	};
	_cleanup_free_ char *word = memory_printf(" %.*s ", (int)length, unit);

	for (size_t i = 0; length > 0 && i < array_size(units); i++)
		if (strstr(units[i].names, word))
			return units[i].ns;
	return 0;
}

// The nanoseconds of a time such as 30 or 1h30m; 0: it is none.
static double sum_parts(const char *text)
{
	double sum_ns = 0, value;
	const char *rest = quantity_parse_decimal(text, &value);

	if (rest && !*rest)
		return value * 1e9;
	do {
		text = quantity_parse_decimal(text, &value);
		if (!text)
			return 0;
		const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz");
		const double unit = unit_ns(text, length);
		if (unit == 0)
			return 0;
		sum_ns += value * unit;
		text += length;
	} while (*text);
	return sum_ns;
}

bool quantity_parse_time(const char *text, int64_t *ret_ns)
{
	const double ns = sum_parts(text);

	if (ns < 1 || ns > (double)MAX_TIME_S * NS_PER_SECOND)
		return false;
	*ret_ns = (int64_t)ns;
	return true;
}

bool quantity_parse_size(const char *text, uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	double value;
	const char *suffix = quantity_parse_decimal(text, &value);

	if (!suffix)
		return false;
	const char *unit = *suffix ? strchr(units, *suffix) : NULL;
	for (const char *at = units; unit && at <= unit; at++)
		value *= 1024;
	suffix += unit != NULL;
	if (*suffix == 'B')
		suffix++;
	if (*suffix || value < 1 || value > (double)((int64_t)1 << 53))
		return false;
	*ret_bytes = (uint64_t)value;
	return true;
}

bool quantity_parse_count(const char *text, long max, long *ret)
{
	long value;

	if (!*text || text[strspn(text, "0123456789")] != '\0')
		return false;
	errno = 0;
	value = strtol(text, NULL, 10);
	if (errno || value < 1 || value > max)
		return false;
	*ret = value;
	return true;
}
