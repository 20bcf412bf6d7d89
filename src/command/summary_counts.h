// SPDX-License-Identifier: MIT
// summary_counts: what the summary of a run has to know of its profile.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"

struct summary_counts {
	size_t n_threads, n_stacks;    // that were seen, those forgotten since included
	uint64_t by_end[N_STACK_ENDS]; // samples
	uint64_t truncated;            // those whose stacks do not reach their root
	uint64_t lack_labels;          // samples
	uint64_t folded_waits;         // samples with profile_wait_is_folded
	bool all_slept;                // in every sample
	int64_t running_ns;            // for how long the samples found threads running
	bool knows_cpu;                // the next two are known
	int64_t cpu_ns, delay_ns;      // as the kernel counted: on a CPU, waiting for one
};

struct summary_counts summary_count(const struct profile *profile);
