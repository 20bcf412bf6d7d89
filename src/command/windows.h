// SPDX-License-Identifier: MIT
// windows: a profile for each stretch of time (--every), which add up to the whole exactly.
//
// What a window holds is what the sums have grown by since the last one.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "timeline.h"

struct window_files;
struct options;
struct profile;
struct run_stats;
struct sample;

struct windows {
	const struct options *options; // borrowed, as the next three
	struct profile *profile;
	const struct run_stats *stats;
	struct window_files *files;
	struct sample *written; // of each of the profile's samples: what is in earlier windows
	size_t n_written, written_capacity;
	int64_t start_ns; // of the window at hand, CLOCK_MONOTONIC
	size_t n_first_stacks;
	bool shows_time;       // the format does
	struct timeline spans; // then: those that have ended in the window at hand
	int64_t *shown_ns;     // of each thread: until when earlier windows show it
	size_t n_shown, shown_capacity;
	size_t collect_at; // of samples: then those that are written are forgotten
};

// Before the first tick, when the profile's start is known.
void windows_begin(struct windows *windows, const struct options *options, struct profile *profile,
                   const struct run_stats *stats, struct window_files *files);
void windows_deinit(struct windows *windows);

// After each tick: begins to write the window if it is over. True: it is.
bool windows_ticked(struct windows *windows);

// Sampling is over: writes the rest, and waits for all that is being written.
void windows_end(struct windows *windows);
