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
	long count; // of intervals; 0: until the end
	int64_t interval_ns, window_ns;
	enum top_view view;
	const char *sort; // NULL: the view's own
};

// The options that it alone has.
extern const struct option_table top_rows;

// For struct verb: takes a process or a recording, and looks whether one is there, or a command.
struct error *top_take_word(struct options *options, const char *word);
struct error *top_check(struct options *options);
