// SPDX-License-Identifier: MIT
// flight_recorder: keeps the last window of time (--ring), and writes it when the user asks for it
// or a trigger fires, while sampling goes on.
#pragma once

#include <stdbool.h>

#include "trigger.h"
#include "ring.h"

struct window_files;
struct modules;
struct options;
struct profile;
struct run_stats;

struct flight_recorder {
	const struct options *options; // borrowed, as the next three
	struct profile *profile;
	const struct run_stats *stats;
	struct window_files *files;
	struct ring ring;
	struct triggers triggers;
	int64_t noticed_ns; // when a trigger last fired
	char *why;          // the window that was asked for and is not written yet, or NULL...
	int64_t end_ns;     // ...and its end
};

// Call it before the first tick, when the profile's start is known.
void flight_recorder_begin(struct flight_recorder *recorder, const struct options *options,
                           struct profile *profile, const struct run_stats *stats,
                           struct window_files *files);
void flight_recorder_deinit(struct flight_recorder *recorder);

// Call it after each tick. `asked`: the user wants the window (SIGUSR1) that ends with that tick.
// It is written as soon as all threads have stopped for it, but after a second at the latest.
void flight_recorder_ticked(struct flight_recorder *recorder, bool asked);

// Call it when sampling is over. Waits for what is being written.
void flight_recorder_end(struct flight_recorder *recorder, bool target_ended);
