// SPDX-License-Identifier: MIT
// flight_recorder: keeps the last window of time (--ring), and writes it when it is asked for
// (window_ends.h).
#pragma once

#include <stdint.h>

#include "ring.h"

struct options;
struct profile;
struct window_end;
struct window_files;

struct flight_recorder {
	const struct options *options; // borrowed, as the next two
	struct profile *profile;
	struct window_files *files;
	struct ring ring;
};

// Call it before anything is counted, when the profile's start is known.
void flight_recorder_begin(struct flight_recorder *recorder, const struct options *options,
                           struct profile *profile, struct window_files *files);
void flight_recorder_deinit(struct flight_recorder *recorder);

// Begins to write the window that ends there.
void flight_recorder_write(struct flight_recorder *recorder, const struct window_end *end);

// Drops what no window can need any more. Call it from time to time.
void flight_recorder_trim(struct flight_recorder *recorder, int64_t now_ns);

// Call it when sampling is over: says so if there was no window.
void flight_recorder_end(const struct flight_recorder *recorder);
