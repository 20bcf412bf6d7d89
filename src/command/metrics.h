// SPDX-License-Identifier: MIT
// metrics: writes the figures of a run as JSON, for programs.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cpu_waits.h"

struct error;
struct json;
struct profile;
struct push_counts;
struct run_stats;

enum { METRICS_VERSION = 1 };

struct metrics {
	int pid;     // of the target
	int sampler; // its CPU time counts; so does the caller's, if that is the writer
	bool ended;  // sampling is over
	const struct run_stats *stats;
	const struct profile *profile;
	struct cpu_waits cpus;               // of the whole run
	const struct push_counts *push;      // NULL: nothing is pushed
	uint64_t lost_windows, lost_samples; // could not be written
};

// Replaces the file's contents by one object on one line.
struct error *metrics_write(const char *path, const struct metrics *metrics);

// Does the same with other figures, which `put` writes, behind the version.
struct error *metrics_write_object(const char *path,
                                   void (*put)(struct json *json, const void *what),
                                   const void *what);

// What others write as well: a moment (CLOCK_REALTIME), and what became of the windows.
void metrics_put_time(struct json *json, const char *key, int64_t time_ns);
void metrics_put_push(struct json *json, const struct push_counts *push);
