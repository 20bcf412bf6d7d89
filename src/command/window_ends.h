// SPDX-License-Identifier: MIT
// window_ends: says in the stream where windows end, while sampling goes on: at multiples of a time
// (--every), or when the user asks for the last one or a trigger fires (--ring).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "trigger.h"

struct options;
struct profile;
struct record_writer;
struct run_stats;

// How long the end of a window that was asked for waits for threads that have not stopped yet.
#define WINDOW_ENDS_MAX_WAIT_NS (2 * NS_PER_SECOND)

struct window_ends {
	const struct options *options; // borrowed, as the next three
	const struct profile *profile;
	const struct run_stats *stats;
	struct record_writer *record;
	int pid; // of the target
	size_t n_first_stacks;
	int64_t n_told; // --every: how many times have passed by the last end
	struct triggers triggers;
	int64_t noticed_ns; // when a trigger last fired
	char *why;          // of the end that was asked for and is not told yet, or NULL...
	int64_t end_ns;     // ...and its time, CLOCK_MONOTONIC
};

// Call it before the first tick, when the profile's start is known. Borrows all arguments.
void window_ends_begin(struct window_ends *ends, const struct options *options,
                       const struct profile *profile, const struct run_stats *stats,
                       struct record_writer *record, int pid);
void window_ends_deinit(struct window_ends *ends);

// Call it after each tick. `asked`: the user wants the window (SIGUSR1) that ends with that tick.
// Its end is told as soon as all threads have stopped for it, but after a while at the latest.
// What has been told is forgotten from time to time (record_writer_forget).
void window_ends_ticked(struct window_ends *ends, bool asked);

// Call it when sampling is over.
void window_ends_finish(struct window_ends *ends, bool target_ended);
