// SPDX-License-Identifier: MIT
#include "weights.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "order.h"

enum {
	LEAST_PERIODS = 10,    // of a class: with a mean of ten, one in 22,000 has no sample
	MAX_CHANCE_SHARE = 50, // of all time: a 50th
	SIGMAS = 4,
};

enum weight_class weight_class_of(enum thread_state state)
{
	switch (state) {
	case THREAD_RUNNING:
		return WEIGHT_RUNNING;
	case THREAD_RUNNABLE:
		return WEIGHT_RUNNABLE;
	default:
		return WEIGHT_BLOCKED;
	}
}

static int64_t total_of(const struct weight_sums *sums)
{
	int64_t total_ns = 0;

	for (int class = 0; class < N_WEIGHT_CLASSES; class ++)
		total_ns += sums->wall_ns[class];
	return total_ns;
}

// Divides the time as the kernel counted it. False if it did not, or not for long enough.
static bool divide(const struct weight_sums *sums, const struct thread_figures *from,
                   const struct thread_figures *to, double ret_ns[N_WEIGHT_CLASSES])
{
	const double total_ns = (double)total_of(sums);
	const double counted_ns = (double)(to->at_ns - from->at_ns);

	if (from->at_ns == 0 || counted_ns <= 0 || 2 * counted_ns < total_ns ||
	    sums->ticks < WEIGHTS_MIN_TICKS || to->cpu_ns < from->cpu_ns ||
	    to->delay_ns < from->delay_ns)
		return false;
	// What the sampler takes from a thread is time in which it would have run.
	const double displaced_ns = (double)(to->displaced_ns - from->displaced_ns);
	const double taken_ns = (double)(to->held_ns - from->held_ns) + displaced_ns;
	double cpu = ((double)(to->cpu_ns - from->cpu_ns) + taken_ns) / counted_ns;
	double delay = ((double)(to->delay_ns - from->delay_ns) - displaced_ns) / counted_ns;
	if (delay < 0)
		delay = 0;
	// A wait for a CPU is counted as a whole when it ends: one that began before `from` is too
	// much, and one that lasts until `to` is missing, which then looks like time asleep.
	if (cpu > 1)
		cpu = 1;
	if (cpu + delay > 1 ||
	    (sums->wall_ns[WEIGHT_BLOCKED] == 0 && sums->wall_ns[WEIGHT_RUNNABLE] > 0))
		delay = 1 - cpu;
	ret_ns[WEIGHT_RUNNING] = cpu * total_ns;
	ret_ns[WEIGHT_RUNNABLE] = delay * total_ns;
	ret_ns[WEIGHT_BLOCKED] = (1 - cpu - delay) * total_ns;
	return true;
}

// True if ticks found the thread active, on a CPU or ready, for longer than the kernel counts, and
// not by chance: the kernel charges nobody for interrupts, for what a hypervisor takes, nor for the
// time in which a disk's answer is on its way.
static bool exceeds(const struct weight_sums *sums, const double class_ns[N_WEIGHT_CLASSES],
                    int64_t period_ns)
{
	const double total_ns = (double)total_of(sums), period = (double)period_ns;
	const double active_ns = class_ns[WEIGHT_RUNNING] + class_ns[WEIGHT_RUNNABLE];
	const double share = active_ns / total_ns;
	const double variance = total_ns * period * share * (1 - share) + period * period;
	const double more_ns =
	    (double)(sums->wall_ns[WEIGHT_RUNNING] + sums->wall_ns[WEIGHT_RUNNABLE]) - active_ns;

	return more_ns > total_ns / MAX_CHANCE_SHARE &&
	       more_ns * more_ns > SIGMAS * SIGMAS * variance;
}

// True if the class is too small for its samples to stand for the kernel's time: it may have none
// by chance, and then its time would be lost, while others would not have more.
static bool is_small(int64_t sampled_ns, double ns, double total_ns, int64_t period_ns)
{
	const double least_ns = (double)(LEAST_PERIODS * period_ns);

	if (sampled_ns == 0 && ns < total_ns / MAX_CHANCE_SHARE)
		return true;
	return (double)sampled_ns < least_ns && ns < least_ns;
}

// Which part of the time running is CPU time: the rest the sampler took, or nobody counted.
static double find_cpu_share(const struct thread_figures *from, const struct thread_figures *to,
                             double running_ns)
{
	const double cpu_ns = (double)(to->cpu_ns - from->cpu_ns);

	return running_ns > cpu_ns && cpu_ns > 0 ? cpu_ns / running_ns : 1;
}

void weights_find(const struct weight_sums *sums, const struct thread_figures *from,
                  const struct thread_figures *to, int64_t period_ns, struct weights *ret)
{
	const double total_ns = (double)total_of(sums);
	double class_ns[N_WEIGHT_CLASSES], weighed_ns = 0, left_ns = total_ns;
	bool small[N_WEIGHT_CLASSES];

	*ret = (struct weights){.factor = {1, 1, 1}, .cpu_share = 1};
	if (!divide(sums, from, to, class_ns))
		return;
	const double counted_ns = (double)(to->at_ns - from->at_ns);
	if (exceeds(sums, class_ns, period_ns)) {
		ret->cpu_share = find_cpu_share(
		    from, to, (double)sums->wall_ns[WEIGHT_RUNNING] * counted_ns / total_ns);
		return;
	}
	for (int class = 0; class < N_WEIGHT_CLASSES; class ++) {
		const int64_t sampled_ns = sums->wall_ns[class];
		small[class] = is_small(sampled_ns, class_ns[class], total_ns, period_ns);
		weighed_ns += small[class] ? 0 : class_ns[class];
		left_ns -= small[class] ? (double)sampled_ns : 0;
	}
	for (int class = 0; class < N_WEIGHT_CLASSES && weighed_ns > 0; class ++) {
		const double ns = class_ns[class] * left_ns / weighed_ns;
		if (small[class])
			continue;
		if (sums->wall_ns[class] > 0)
			ret->factor[class] = ns / (double)sums->wall_ns[class];
		else
			ret->unseen_ns[class] = (int64_t)(ns + 0.5);
	}
	if (!small[WEIGHT_RUNNING])
		ret->cpu_share =
		    find_cpu_share(from, to, class_ns[WEIGHT_RUNNING] * counted_ns / total_ns);
}

// Returns the pids of processes with tasks, sorted; the caller frees.
static int *find_with_tasks(const struct profile *profile, size_t *ret_count)
{
	int *pids = NULL;
	size_t n = 0, capacity = 0;

	for (size_t i = 0; i < profile->n_threads; i++) {
		const struct thread *thread = &profile->threads[i];
		if (thread->is_task && (n == 0 || pids[n - 1] != thread->pid))
			*array_push(pids, n, capacity) = thread->pid;
	}
	if (n > 0)
		qsort(pids, n, sizeof(*pids), order_of_ints);
	*ret_count = n;
	return pids;
}

static struct weights *weights_of_threads(const struct profile *profile,
                                          const struct weight_sums *sums)
{
	struct weights *weights = memory_alloc_zeroed(profile->n_threads + 1, sizeof(*weights));
	size_t n_with;
	_cleanup_free_ int *with_tasks = find_with_tasks(profile, &n_with);

	for (size_t i = 0; i < profile->n_threads; i++) {
		const int pid = profile->threads[i].pid;
		struct thread_figures from, to;
		if (n_with > 0 &&
		    bsearch(&pid, with_tasks, n_with, sizeof(*with_tasks), order_of_ints))
			from = to = (struct thread_figures){0};
		else
			profile_figures(profile, i, &from, &to);
		weights_find(&sums[i], &from, &to, profile->period_ns, &weights[i]);
	}
	return weights;
}

struct weights *weights_of_spans(const struct profile *profile, const struct span *spans, size_t n)
{
	_cleanup_free_ struct weight_sums *sums =
	    memory_alloc_zeroed(profile->n_threads + 1, sizeof(*sums));

	for (size_t i = 0; i < n; i++) {
		const enum thread_state state = profile->samples[spans[i].sample].state;
		struct weight_sums *sum = &sums[spans[i].thread];
		sum->ticks += spans[i].count;
		sum->wall_ns[weight_class_of(state)] += spans[i].end_ns - spans[i].start_ns;
	}
	return weights_of_threads(profile, sums);
}

static bool is_one_wait(const struct profile *profile)
{
	return profile->n_samples > 0 && profile->samples[0].is_one_wait;
}

static struct weight_sums *sum_up(const struct profile *profile)
{
	struct weight_sums *sums = memory_alloc_zeroed(profile->n_threads + 1, sizeof(*sums));

	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		sums[sample->thread].ticks += sample->count;
		sums[sample->thread].wall_ns[weight_class_of(sample->state)] += sample->wall_ns;
	}
	return sums;
}

struct weights *weights_of_profile(const struct profile *profile)
{
	_cleanup_free_ struct weight_sums *sums = sum_up(profile);

	return weights_of_threads(profile, sums);
}

// Scales the samples. Rounding errors are handed on from sample to sample, so that each thread's
// samples keep their sum.
static void scale(struct weighed *weighed, const struct weights *weights)
{
	const size_t n = weighed->profile.n_threads;
	_cleanup_free_ double *errors = memory_alloc_zeroed(n + 1, sizeof(*errors));

	for (size_t i = 0; i < weighed->profile.n_samples; i++) {
		struct sample *sample = &weighed->samples[i];
		const enum weight_class class = weight_class_of(sample->state);
		const double factor = weights[sample->thread].factor[class];
		const double share = weights[sample->thread].cpu_share;
		double *error = &errors[sample->thread];
		const double wanted_ns = (double)sample->wall_ns * factor + *error;
		// Differences, which may be below 0, are not weighed.
		if (sample->wall_ns == 0 || (factor == 1 && share == 1))
			continue;
		if (factor != 1) {
			sample->wall_ns = (int64_t)(wanted_ns > 0 ? wanted_ns + 0.5 : 0);
			*error = wanted_ns - (double)sample->wall_ns;
		}
		sample->cpu_ns =
		    class == WEIGHT_RUNNING ? (int64_t)((double)sample->wall_ns * share + 0.5) : 0;
	}
}

static void add_unseen(struct weighed *weighed, const struct weights *weights, size_t *capacity)
{
	static const enum thread_state states[N_WEIGHT_CLASSES] = {THREAD_RUNNING, THREAD_RUNNABLE,
	                                                           THREAD_SLEEPING};
	struct profile *profile = &weighed->profile;

	for (size_t i = 0; i < profile->n_threads; i++) {
		for (int class = 0; class < N_WEIGHT_CLASSES; class ++) {
			const int64_t ns = weights[i].unseen_ns[class];
			if (ns == 0)
				continue;
			*array_push(weighed->samples, profile->n_samples, *capacity) =
			    (struct sample){
			        .stack = profile->n_stacks - 1,
			        .thread = i,
			        .wait = WAIT_NONE,
			        .state = states[class],
			        .wall_ns = ns,
			        .cpu_ns = class == WEIGHT_RUNNING ? ns : 0,
			    };
		}
	}
}

void weighed_init(struct weighed *ret, const struct profile *profile)
{
	size_t capacity = profile->n_samples + 1;

	*ret = (struct weighed){.profile = *profile};
	if (is_one_wait(profile))
		return;
	_cleanup_free_ struct weights *weights = weights_of_profile(profile);
	ret->samples = memory_alloc_zeroed(capacity, sizeof(*ret->samples));
	if (profile->n_samples > 0)
		memcpy(ret->samples, profile->samples, profile->n_samples * sizeof(*ret->samples));
	ret->stacks = memory_alloc_zeroed(profile->n_stacks + 1, sizeof(*ret->stacks));
	if (profile->n_stacks > 0)
		memcpy(ret->stacks, profile->stacks, profile->n_stacks * sizeof(*ret->stacks));
	ret->stacks[profile->n_stacks] = (struct stack){.end = STACK_UNSEEN};
	ret->profile.stacks = ret->stacks;
	ret->profile.n_stacks = profile->n_stacks + 1;
	scale(ret, weights);
	add_unseen(ret, weights, &capacity);
	ret->profile.samples = ret->samples;
}

void weighed_deinit(struct weighed *weighed)
{
	free(weighed->samples);
	free(weighed->stacks);
	*weighed = (struct weighed){0};
}
