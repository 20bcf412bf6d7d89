// SPDX-License-Identifier: MIT
// weights: what the samples of each of a thread's states stand for, by the kernel's own count.
//
// The ticks say in which states a thread was seen, and how often; the kernel counts exactly for how
// long it was on a CPU and waited for one. So the time for which a thread was watched is divided as
// the kernel counted it, and the samples of a state share that state's time equally
// (post-stratification: Cochran, Sampling Techniques, 5A.9). Totals are then exact, and what is
// left to chance is only how a state's time divides among its stacks. src/sample/README.md argues
// why that is right.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "profile.h"

// Threads with fewer samples are not weighed.
enum { WEIGHTS_MIN_TICKS = 16 };

enum weight_class {
	WEIGHT_RUNNING,  // on a CPU
	WEIGHT_RUNNABLE, // waiting for a CPU
	WEIGHT_BLOCKED,  // all else
	N_WEIGHT_CLASSES,
};

enum weight_class weight_class_of(enum thread_state state);

// What was sampled of one thread in some stretch of time.
struct weight_sums {
	uint64_t ticks;
	int64_t wall_ns[N_WEIGHT_CLASSES];
};

struct weights {
	double factor[N_WEIGHT_CLASSES]; // of a sample's wall time; 1: as sampled
	double cpu_share; // of the time running: the rest the sampler took from the thread
	int64_t unseen_ns[N_WEIGHT_CLASSES]; // time of a class of which there is no sample
};

// Finds the weights of a thread that the kernel has counted between `from` and `to`. The time of
// all classes together is unchanged. As sampled stay:
// - all classes, if at_ns is 0 (the kernel shows no figures), of fewer than 16 ticks, and if the
//   figures cover less than half of the time;
// - a class of less than 10 periods, by samples and by the kernel, and one without samples of less
//   than 2 % of all: with so few, having no sample at all is likely enough to matter;
// - all, but for CPU time, if ticks found the thread active for longer than the kernel counts
//   (4 standard errors, and 2 % of all): the kernel leaves out interrupts and what a hypervisor
//   takes.
void weights_find(const struct weight_sums *sums, const struct thread_figures *from,
                  const struct thread_figures *to, int64_t period_ns, struct weights *ret);

// Does the same for spans, of some or all threads, by the threads' figures (profile_figures). The
// caller frees; there are profile->n_threads. Threads of processes with tasks are as sampled: the
// kernel does not count those.
struct weights *weights_of_spans(const struct profile *profile, const struct span *spans, size_t n);

// Does the same for all samples of the profile, which may be a part of one (slice_view).
struct weights *weights_of_profile(const struct profile *profile);

// A profile whose samples are weighed. Borrows all but samples and stacks.
struct weighed {
	struct profile profile;
	struct sample *samples;
	struct stack *stacks;
};

// Weighs the profile, which must outlive *ret. Counts are unchanged; what no tick has seen becomes
// samples with a count of 0, whose stack ends with STACK_UNSEEN.
void weighed_init(struct weighed *ret, const struct profile *profile);
void weighed_deinit(struct weighed *weighed);
