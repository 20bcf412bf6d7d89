// moment: a point of time as users write it: an offset from the start of sampling (5, 1.5s, 2m) or
// a wall-clock time (14:03:07, 2026-11-20T14:03:07.25, with Z or an offset such as +01:00; without,
// local time).
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum moment_kind {
	MOMENT_NONE,
	MOMENT_OFFSET,   // ns since the start
	MOMENT_DAY_TIME, // ns since midnight, local: the first such time after the start
	MOMENT_TIME,     // ns since the epoch
};

struct moment {
	enum moment_kind kind;
	int64_t ns;
};

// False: it is none.
bool moment_parse(const char *text, struct moment *ret);

// The nanoseconds from a start at `start_time_ns` (CLOCK_REALTIME) to the moment; negative where it
// was before.
int64_t moment_offset_ns(const struct moment *moment, int64_t start_time_ns);

// As 2026-11-20T14:03:07.250Z, or with `compact` 20261120T140307Z, fit for a file name.
enum { MOMENT_TEXT_SIZE = 64 };
void moment_format(int64_t time_ns, bool compact, char ret[MOMENT_TEXT_SIZE]);
