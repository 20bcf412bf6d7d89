// SPDX-License-Identifier: MIT
// metrics: writes the figures of a run as JSON, for programs.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct profile;
struct push_counts;
struct run_stats;

struct metrics {
	int pid;    // of the target
	bool ended; // sampling is over
	const struct run_stats *stats;
	const struct profile *profile;
	const struct push_counts *push;      // NULL: nothing is pushed
	uint64_t lost_windows, lost_samples; // could not be written
};

// Replaces the file's contents by one object on one line.
struct error *metrics_write(const char *path, const struct metrics *metrics);
