// SPDX-License-Identifier: MIT
// metrics: a run's own figures as JSON, for programs.
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
	uint64_t lost_windows, lost_samples; // that could not be written
};

// Writes one object on one line to the file, in place of what stood there.
struct error *metrics_write(const char *path, const struct metrics *metrics);
