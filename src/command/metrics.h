// SPDX-License-Identifier: MIT
// metrics: writes the figures of a run, or of the agent, as JSON, for programs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu_waits.h"

struct agent_cost;
struct error;
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

struct agent_counts {
	uint64_t windows; // begun
	uint64_t failed;  // of these
	uint64_t left_out, denied, silent;
	uint64_t over_limit; // samplers that this agent ended: they took too much memory or time
	uint64_t killed;     // by others, as by the kernel
	// Of windows that have ended.
	uint64_t ticks, missed_ticks, samples, unmended_calls;
	uint64_t lost_windows, lost_samples; // that were not written
};

struct agent_metrics {
	bool ended, is_off;
	int64_t start_ns; // CLOCK_REALTIME
	size_t n_processes, n_chosen, n_running;
	const struct agent_counts *counts;
	const struct agent_cost *cost;
	const struct push_counts *push; // NULL: nothing is pushed
};

// Does the same with the agent's own figures.
struct error *agent_metrics_write(const char *path, const struct agent_metrics *metrics);
