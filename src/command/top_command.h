// SPDX-License-Identifier: MIT
// top_command: `profiler top`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "top_table.h"

struct error;
struct option_table;

struct exec_kept;
struct options;

// How top samples. `sample` samples what the options ask for in the calling process, and writes a
// recording to the pipe `fd` without ever waiting for its reader, who gets its modules' files
// through the socket `files`; returns the exit status. `kept` is as in supervise().
struct top_sampler {
	int (*sample)(void *context, int fd, int files, const struct exec_kept *kept);
	void *context;
};

// Shows what the threads of a process or of a recording do; returns the exit status.
int top_command(const struct options *options, const struct top_sampler *sampler);

// The command line of `profiler top`.
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

// For struct verb: checks that there is a process, a recording or a command.
struct error *top_check(struct options *options);
