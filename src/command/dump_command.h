// SPDX-License-Identifier: MIT
// dump_command: `profiler dump`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "time_point.h"

struct error;
struct option_table;

struct options;

// Writes the dumps that the options ask for, reports errors on stderr, and returns the exit status.
int dump_command(const struct options *options);

// The command line of `profiler dump`.
struct dump_options {
	bool json, all_frames, no_group, no_locks, check;
	int64_t blocked_ns; // --blocked; 0: not given
	long count;         // -n
	int64_t interval_ns;
	struct time_point at; // of a recording
};

// The options of this verb alone.
extern const struct option_table dump_rows;

// For struct verb: dump_take_word takes a process or a recording; dump_check checks that there is
// one.
struct error *dump_take_word(struct options *options, const char *word);
struct error *dump_check(struct options *options);
