// SPDX-License-Identifier: MIT
// agent_metrics: the agent's own figures as JSON, for programs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_cost;
struct agent_counts;
struct agent_sums;
struct error;
struct push_counts;

struct agent_metrics {
	bool ended, is_off;
	int64_t start_ns; // CLOCK_REALTIME
	size_t n_processes, n_chosen, n_running;
	const struct agent_counts *counts;
	const struct agent_sums *sums; // NULL: not known
	const struct agent_cost *cost;
	const struct push_counts *push; // NULL: nothing is pushed
};

// Writes one object on one line to the file, in place of what stood there.
struct error *agent_metrics_write(const char *path, const struct agent_metrics *metrics);
