// SPDX-License-Identifier: MIT
// top_options: the command line of `profiler top`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "top_table.h"

struct error;
struct option_table;
struct options;

struct top_options {
	bool json;
	bool idle;  // idle time is counted, and idle threads are shown
	bool raw;   // functions and calls as sampled, not by the program's own code
	long count; // how many intervals are shown; 0: until the end
	int64_t interval_ns, window_ns;
	enum top_view view;
	const char *sort; // the column's name; NULL: the view's own order
};

// The options of this verb alone.
extern const struct option_table top_rows;

// For struct verb: top_take_word takes a process or a recording; top_check checks that there is
// one, or a command.
struct error *top_take_word(struct options *options, const char *word);
struct error *top_check(struct options *options);
