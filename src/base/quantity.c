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

bool quantity_parse_time(const char *text, int64_t *ret_ns)
{
	static const struct {
		const char *suffix;
		double ns;
	} units[] = {
	    {"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"m", 60e9}, {"h", 3600e9},
	};
	double value;
	const char *suffix = quantity_parse_decimal(text, &value);

	if (!suffix)
		return false;
	for (size_t i = 0; i < array_size(units); i++) {
		if (strcmp(suffix, units[i].suffix) != 0)
			continue;
		double ns = value * units[i].ns;
		if (ns < 1 || ns > (double)MAX_TIME_S * NS_PER_SECOND)
			return false;
		*ret_ns = (int64_t)ns;
		return true;
	}
	return false;
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
