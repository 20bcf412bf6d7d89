// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "memory.h"
#include "time_point.h"
#include "unit.h"

// 2026-11-20T14:03:07.500Z
#define START_NS (1795183387 * NS_PER_SECOND + 500 * NS_PER_MS)

static void test_offsets(void **state)
{
	static const struct {
		const char *text;
		int64_t ns; // from the start
	} cases[] = {
	    {"0", 0},
	    {"5", 5 * NS_PER_SECOND},
	    {"1.5s", 1500 * NS_PER_MS},
	    {"2m", 120 * NS_PER_SECOND},
	    {"14:03:10", 2500 * NS_PER_MS},
	    {"14:03:10.25", 2750 * NS_PER_MS},
	    {"14:03:07", -500 * NS_PER_MS},
	    {"14:04", 52500 * NS_PER_MS},
	    {"14:03", (24 * 3600 - 7) * NS_PER_SECOND - 500 * NS_PER_MS}, // tomorrow
	    {"2026-11-20T14:03:08Z", 500 * NS_PER_MS},
	    {"2026-11-20 14:03:08", 500 * NS_PER_MS}, // local time is UTC here
	    {"2026-11-20T15:03:08+01:00", 500 * NS_PER_MS},
	    {"2026-11-20T09:03:08.125-0500", 625 * NS_PER_MS},
	    {"2026-11-21T14:03:07.5Z", 24 * 3600 * NS_PER_SECOND},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		struct time_point point = {0};
		assert_true(time_point_parse(cases[i].text, &point));
		assert_int_equal(time_point_offset_ns(&point, START_NS), cases[i].ns);
	}
}

// Local times mean the zone that the user is in.
static void test_local_time(void **state)
{
	struct time_point point;

	(void)state;
	setenv("TZ", "XXX-2", 1); // two hours east
	tzset();
	assert_true(time_point_parse("16:03:08", &point));
	assert_int_equal(time_point_offset_ns(&point, START_NS), 500 * NS_PER_MS);
	assert_true(time_point_parse("2026-11-20T16:03:08", &point));
	assert_int_equal(time_point_offset_ns(&point, START_NS), 500 * NS_PER_MS);
	setenv("TZ", "UTC", 1);
	tzset();
}

// Where clocks change, a day has 23 or 25 hours, and hours that are not there or there twice.
static void test_clock_changes(void **state)
{
	static const struct {
		const char *zone, *start, *text;
		int64_t s;
	} cases[] = {
	    {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-28T13:03:00Z", "14:03:02", 2},
	    {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29T12:03:00Z", "14:03:02", 2},
	    {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29T12:03:00Z", "2026-03-29T14:03:02", 2},
	    {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25T13:03:00Z", "14:03:02", 2},
	    {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25T13:03:00Z", "2026-10-25T14:03:02", 2},
	    {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-28T22:59:59Z", "00:00:01", 2},
	    {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-28T22:59:59Z", "03:00:01", 2 * 3600 + 2},
	    {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29T12:00:00Z", "13:59:59", 24 * 3600 - 1},
	    // It comes twice: the first one that is not before the start.
	    {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25T00:30:00Z", "02:30:02", 2},
	    {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25T01:30:00Z", "02:30:02", 2},
	    {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25T00:30:00Z", "02:29:59", 3599},
	    {"CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25T01:30:00Z", "02:29:59", 25 * 3600 - 3601},
	    {"EST5EDT,M3.2.0,M11.1.0", "2026-03-08T18:03:00Z", "14:03:02", 2},
	    {"EST5EDT,M3.2.0,M11.1.0", "2026-03-08T06:59:59Z", "03:00:01", 2},
	    // The day does not have it, but the next one.
	    {"EST5EDT,M3.2.0,M11.1.0", "2026-03-08T06:59:59Z", "02:00:01", 23 * 3600 + 2},
	    {"LHST-10:30LHDT-11,M10.1.0,M4.1.0", "2026-10-03T15:29:59Z", "02:30:01", 2},
	    {"XXX-14", "2026-10-25T13:03:00Z", "03:03:02", 2},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		struct time_point start, point;
		setenv("TZ", cases[i].zone, 1);
		tzset();
		assert_true(time_point_parse(cases[i].start, &start));
		assert_true(time_point_parse(cases[i].text, &point));
		const int64_t ns = time_point_offset_ns(&point, start.ns);
		if (ns != cases[i].s * NS_PER_SECOND)
			print_error("%s from %s: %lld s\n", cases[i].text, cases[i].start,
			            (long long)(ns / NS_PER_SECOND));
		assert_int_equal(ns, cases[i].s * NS_PER_SECOND);
	}
	setenv("TZ", "UTC", 1);
	tzset();
}

static void test_no_time_points(void **state)
{
	static const char *const bad[] = {
	    "",
	    "-5",
	    "5x",
	    "24:00",
	    "14:60",
	    "14:3",
	    "14:03:",
	    "14:03x",
	    "2026-11-20",
	    "2026-13-20T14:03",
	    "2026-11-20T14:03+1",
	    "2026-11-20T",
	    "noon",
	    "14:03Z",
	    "0000-01-01T00:00:00Z",
	};
	struct time_point point = {.ns = 7};

	(void)state;
	for (size_t i = 0; i < array_size(bad); i++)
		assert_false(time_point_parse(bad[i], &point));
	assert_int_equal(point.ns, 7);
}

static void test_format(void **state)
{
	char text[TIME_POINT_TEXT_SIZE];

	(void)state;
	time_point_format(START_NS, false, text);
	assert_string_equal(text, "2026-11-20T14:03:07.500Z");
	time_point_format(START_NS, true, text);
	assert_string_equal(text, "20261120T140307Z");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_offsets),       cmocka_unit_test(test_local_time),
	    cmocka_unit_test(test_clock_changes), cmocka_unit_test(test_no_time_points),
	    cmocka_unit_test(test_format),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
