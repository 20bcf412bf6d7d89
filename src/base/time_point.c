// SPDX-License-Identifier: MIT
#include "time_point.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "quantity.h"

enum {
	MAX_YEAR = 2200,
	DAYS = 3, // until each time of the day has come
};

// Two digits or more in a fixed width; NULL: none. Returns what follows.
static const char *digits(const char *text, int width, int max, int *ret)
{
	*ret = 0;
	for (int i = 0; i < width; i++, text++) {
		if (*text < '0' || *text > '9')
			return NULL;
		*ret = *ret * 10 + (*text - '0');
	}
	return *ret <= max ? text : NULL;
}

static const char *character(const char *text, const char *set)
{
	return text && *text && strchr(set, *text) ? text + 1 : NULL;
}

// HH:MM, HH:MM:SS or HH:MM:SS.fraction; returns what follows, or NULL.
static const char *parse_day_time(const char *text, int64_t *ret_ns)
{
	int hour, minute, second = 0;
	int64_t fraction_ns = 0;

	text = digits(text, 2, 23, &hour);
	text = character(text, ":");
	text = text ? digits(text, 2, 59, &minute) : NULL;
	if (!text)
		return NULL;
	if (*text == ':') {
		text = digits(text + 1, 2, 60, &second);
		if (!text)
			return NULL;
	}
	if (*text == '.') {
		int64_t unit_ns = NS_PER_SECOND;
		for (text++; *text >= '0' && *text <= '9'; text++) {
			unit_ns /= 10;
			fraction_ns += (*text - '0') * unit_ns;
		}
	}
	*ret_ns = ((hour * 60 + minute) * 60 + second) * NS_PER_SECOND + fraction_ns;
	return text;
}

// Z, +HH:MM, +HHMM, or nothing: local time. False: something else.
static bool parse_zone(const char *text, bool *ret_local, int64_t *ret_east_s)
{
	int hours, minutes;

	*ret_east_s = 0;
	*ret_local = *text == '\0';
	if (*ret_local || strcmp(text, "Z") == 0)
		return true;
	const int sign = *text == '+' ? 1 : -1;
	text = character(text, "+-");
	text = text ? digits(text, 2, 23, &hours) : NULL;
	if (text && *text == ':')
		text++;
	text = text ? digits(text, 2, 59, &minutes) : NULL;
	*ret_east_s = text ? sign * (hours * 3600 + minutes * 60) : 0;
	return text && *text == '\0';
}

static void set_day_time(struct tm *tm, int64_t day_ns)
{
	const int seconds = (int)(day_ns / NS_PER_SECOND);

	tm->tm_hour = seconds / 3600 % 24; // a leap second is the next minute's first
	tm->tm_min = seconds / 60 % 60;
	tm->tm_sec = seconds % 60;
}

static bool parse_time(const char *text, int64_t *ret_ns)
{
	struct tm tm = {.tm_isdst = -1};
	int year, month, day;
	int64_t day_ns, east_s;
	bool local;

	text = digits(text, 4, MAX_YEAR, &year);
	text = character(text, "-");
	text = text ? digits(text, 2, 12, &month) : NULL;
	text = character(text, "-");
	text = text ? digits(text, 2, 31, &day) : NULL;
	text = character(text, "T t");
	text = text ? parse_day_time(text, &day_ns) : NULL;
	if (!text || !parse_zone(text, &local, &east_s) || year < 1970 || month < 1 || day < 1)
		return false;
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	tm.tm_mday = day;
	set_day_time(&tm, day_ns);
	const time_t seconds = local ? mktime(&tm) : timegm(&tm);
	*ret_ns = (seconds - east_s) * NS_PER_SECOND + day_ns % NS_PER_SECOND;
	return true;
}

bool time_point_parse(const char *text, struct time_point *ret)
{
	struct time_point point = {.kind = TIME_POINT_OFFSET};

	if (strcmp(text, "0") == 0 || strcmp(text, "0s") == 0) {
		*ret = point;
		return true;
	}
	if (quantity_parse_time(text, &point.ns)) {
		*ret = point;
		return true;
	}
	point.kind = TIME_POINT_DAY_TIME;
	const char *rest = parse_day_time(text, &point.ns);
	if (!rest || *rest) {
		point.kind = TIME_POINT_TIME;
		if (!parse_time(text, &point.ns))
			return false;
	}
	*ret = point;
	return true;
}

// True if the day has that local time; *ret is it then. `is_dst` chooses where it comes twice.
static bool find_day_time(const struct tm *day, int64_t day_ns, int is_dst, time_t *ret)
{
	struct tm tm = *day;

	set_day_time(&tm, day_ns);
	const struct tm wanted = tm;
	tm.tm_isdst = is_dst;
	*ret = mktime(&tm); // changes what the day does not have
	return tm.tm_hour == wanted.tm_hour && tm.tm_min == wanted.tm_min &&
	       tm.tm_sec == wanted.tm_sec;
}

// The first time of the day that is not before the start. Where clocks change, a day lacks an hour
// or has one twice.
static int64_t day_time_offset_ns(int64_t day_ns, int64_t start_time_ns)
{
	const time_t start_s = start_time_ns / NS_PER_SECOND;
	time_t first = 0;
	struct tm day;

	localtime_r(&start_s, &day);
	for (int i = 0; i < DAYS * 2; i++) {
		time_t seconds;
		// "14:03:07" also means a start at 14:03:07.5.
		if (find_day_time(&day, day_ns, i % 2, &seconds) && seconds >= start_s &&
		    (first == 0 || seconds < first))
			first = seconds;
		day.tm_mday += i % 2;
	}
	return first * NS_PER_SECOND + day_ns % NS_PER_SECOND - start_time_ns;
}

int64_t time_point_offset_ns(const struct time_point *point, int64_t start_time_ns)
{
	switch (point->kind) {
	case TIME_POINT_DAY_TIME:
		return day_time_offset_ns(point->ns, start_time_ns);
	case TIME_POINT_TIME:
		return point->ns - start_time_ns;
	default:
		return point->ns;
	}
}

void time_point_format(int64_t time_ns, bool compact, char ret[TIME_POINT_TEXT_SIZE])
{
	const time_t seconds = time_ns / NS_PER_SECOND;
	char text[32];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), compact ? "%Y%m%dT%H%M%S" : "%Y-%m-%dT%H:%M:%S", &tm);
	if (compact)
		snprintf(ret, TIME_POINT_TEXT_SIZE, "%sZ", text);
	else
		snprintf(ret, TIME_POINT_TEXT_SIZE, "%s.%03dZ", text,
		         (int)(time_ns % NS_PER_SECOND / NS_PER_MS));
}
