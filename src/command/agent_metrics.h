// SPDX-License-Identifier: MIT
// agent_metrics: the agent's own figures as JSON, for programs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_cost;
struct error;
struct push_counts;

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

// Writes one object on one line to the file, in place of what stood there.
struct error *agent_metrics_write(const char *path, const struct agent_metrics *metrics);
