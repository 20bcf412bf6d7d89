// SPDX-License-Identifier: MIT
// profile_writer: keeps what the process that samples tells, names it, and writes the profile, in a
// process of its own (supervise.h): whatever kills the one that samples, the profile so far is
// written.
//
// What is told is a recording, as a stream (record_writer.h), with its modules' files beside it.
// With -f record it is also what is written, as it comes.
#pragma once

#include <stdbool.h>

#include "run_stats.h"

struct options;
struct supervise_writer;

// What the process that samples, and the writer, tell beside the stream, in memory that they share.
struct run_told {
	struct run_stats stats;
	bool has_ended;  // sampling; else the process was killed
	bool is_written; // the one file
};

// Returns zeroed memory that processes forked later share. run_told_destroy accepts NULL.
struct run_told *run_told_create(void);
void run_told_destroy(struct run_told *told);

struct profile_writer {
	const struct options *options; // borrowed, as the next one
	struct run_told *told;
};

// Does all that, in the writer's process. `context` is a struct profile_writer. Returns the exit
// status.
int profile_writer_run(void *context, const struct supervise_writer *process);
