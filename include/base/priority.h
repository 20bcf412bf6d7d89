// SPDX-License-Identifier: MIT
// priority: has the sampler run as soon as its tick is due, and not lose its CPU while it holds a
// thread.
//
// A sampler that gets its CPU late sees what the target does then: mostly its waits, since that is
// when the target gives its CPU away. Measured with one CPU and a program that computes for 1 ms
// and naps for 1 ms, a true 49 % of computing was sampled as 2 to 13 %; with a slice of 0.1 ms as
// 47 to 49 %. And a sampler that is preempted holds a thread for as long: with 8 busy threads on 2
// CPUs 1.9 ms, with SCHED_FIFO 0.1 ms.
#pragma once

#include <stdbool.h>

enum priority_level {
	PRIORITY_USUAL,    // nothing better is permitted
	PRIORITY_SLICE,    // a scheduler slice of 0.1 ms: wakes before others' slices have ended
	PRIORITY_NICE,     // nice -20, without the slice
	PRIORITY_REALTIME, // SCHED_FIFO, lowest priority
};

// Returns "usual", "short slice", "nice -20" or "SCHED_FIFO".
const char *priority_name(enum priority_level level);

struct priority {
	enum priority_level level;
	bool is_nice, is_sliced; // what priority_restore has to undo
	int original_nice;
};

// Raises this thread's priority as far as the system permits: SCHED_FIFO; else nice -20, where that
// is permitted, and a short slice, which any user may ask for (EEVDF: a thread with a shorter slice
// has an earlier deadline and preempts; Linux 6.12 and later, sched_setattr(2), sched_runtime of
// SCHED_OTHER). Children do not inherit it (SCHED_RESET_ON_FORK).
void priority_raise(struct priority *priority);

// Restores the original priority, for everything that comes after sampling.
void priority_restore(const struct priority *priority);
