// SPDX-License-Identifier: MIT
// agent_sums: what all samplers of an agent have sampled, in memory that they share with it, and
// what the agent itself has counted.
#pragma once

#include <stdint.h>

struct run_stats;
struct window_files;

// Of windows that came to their ends; of one that was killed nothing is known.
struct agent_sums {
	_Atomic uint64_t ticks, missed_ticks, samples;
	_Atomic uint64_t unmended_calls;
	_Atomic uint64_t lost_windows, lost_samples; // that could not be written
};

// A window has come to its end, and its file is written or lost.
void agent_sums_add(struct agent_sums *sums, const struct run_stats *stats,
                    const struct window_files *files);

struct agent_counts {
	uint64_t windows; // begun
	uint64_t failed;  // of these
	uint64_t left_out, denied, silent;
	uint64_t over_limit; // samplers that took too much memory or time, and ended early
	uint64_t killed;     // samplers: by this agent, or by the kernel
};
