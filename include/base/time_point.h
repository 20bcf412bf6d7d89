// SPDX-License-Identifier: MIT
// time_point: a point of time as users write it: an offset from the start of sampling (5, 1.5s, 2m)
// or a wall-clock time (14:03:07, 2026-11-20T14:03:07.25, with Z or an offset such as +01:00;
// without, local time).
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum time_point_kind {
	TIME_POINT_NONE,
	TIME_POINT_OFFSET,   // ns since the start
	TIME_POINT_DAY_TIME, // ns since midnight, local: the first such time after the start
	TIME_POINT_TIME,     // ns since the epoch
};

struct time_point {
	enum time_point_kind kind;
	int64_t ns;
};

// False: the text is not one.
bool time_point_parse(const char *text, struct time_point *ret);

// The nanoseconds from a start at `start_time_ns` (CLOCK_REALTIME) to the point; negative where it
// was before.
int64_t time_point_offset_ns(const struct time_point *point, int64_t start_time_ns);

// As 2026-11-20T14:03:07.250Z, or with `compact` 20261120T140307Z, fit for a file name.
enum { TIME_POINT_TEXT_SIZE = 64 };
void time_point_format(int64_t time_ns, bool compact, char ret[TIME_POINT_TEXT_SIZE]);
