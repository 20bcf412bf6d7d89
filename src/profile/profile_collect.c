// SPDX-License-Identifier: MIT
#include "profile_collect.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "profile.h"

enum { MIN_COLLECT = 4096 };

bool profile_collect_is_due(const struct profile *profile)
{
	return profile->n_samples - profile->n_free_samples >= (profile->collect_at ?: MIN_COLLECT);
}

// Keeps a thread's samples with the stack of its last one: asleep, and ready to run (accounting.h).
static void keep_last_samples(const struct profile *profile, bool *kept)
{
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		const struct thread *thread = &profile->threads[sample->thread];
		if (!thread->ended &&
		    profile->samples[thread->span.sample].thread == sample->thread &&
		    profile->samples[thread->span.sample].stack == sample->stack)
			kept[i] = true;
	}
}

static void forget_sample(struct profile *profile, struct sample *sample)
{
	profile->forgotten.by_end[profile->stacks[sample->stack].end] += sample->count;
	profile->forgotten.cpu_ns += sample->cpu_ns;
	*sample = (struct sample){0};
}

static void free_samples(struct profile *profile, const bool *kept)
{
	profile->free_samples = memory_grow(profile->free_samples, &profile->free_samples_capacity,
	                                    profile->n_samples, sizeof(*profile->free_samples));
	profile->n_free_samples = 0;
	for (size_t i = 0; i < profile->n_samples; i++) {
		if (kept[i] && profile->samples[i].count > 0)
			continue;
		forget_sample(profile, &profile->samples[i]);
		profile->free_samples[profile->n_free_samples++] = i;
	}
}

static void forget_thread(struct profile *profile, struct thread *thread)
{
	struct profile_totals *forgotten = &profile->forgotten;

	thread->forgotten = true;
	forgotten->threads++;
	forgotten->kernel_cpu_ns += thread->kernel_cpu_ns > 0 ? thread->kernel_cpu_ns : 0;
	forgotten->kernel_delay_ns += thread->kernel_delay_ns > 0 ? thread->kernel_delay_ns : 0;
}

static void free_threads(struct profile *profile)
{
	_cleanup_free_ bool *used = memory_alloc_zeroed(profile->n_threads, sizeof(*used));

	for (size_t i = 0; i < profile->n_samples; i++)
		if (profile->samples[i].count > 0)
			used[profile->samples[i].thread] = true;
	profile->free_threads = memory_grow(profile->free_threads, &profile->free_threads_capacity,
	                                    profile->n_threads, sizeof(*profile->free_threads));
	for (size_t i = 0; i < profile->n_free_threads; i++)
		used[profile->free_threads[i]] = true; // already counted
	for (size_t i = 0; i < profile->n_threads; i++) {
		if (used[i] || !profile->threads[i].ended)
			continue;
		forget_thread(profile, &profile->threads[i]);
		profile->free_threads[profile->n_free_threads++] = i;
	}
}

// When a process or a thread began.
struct birth {
	int pid;
	int64_t ns;
	size_t process; // its index; NO_PROCESS: it is a thread
};

static const size_t NO_PROCESS = SIZE_MAX;

// By pid, then by time: each process before its threads.
static int compare_births(const void *a, const void *b)
{
	const struct birth *left = a, *right = b;

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	if (left->ns != right->ns)
		return left->ns < right->ns ? -1 : 1;
	return left->process < right->process ? -1 : left->process > right->process;
}

static struct birth *sort_births(const struct profile *profile, size_t *ret_count)
{
	struct birth *births =
	    memory_alloc_zeroed(profile->n_processes + profile->n_threads, sizeof(*births));
	size_t n = 0;

	for (size_t i = 0; i < profile->n_processes; i++)
		births[n++] =
		    (struct birth){profile->processes[i].pid, profile->processes[i].from_ns, i};
	for (size_t i = 0; i < profile->n_threads; i++)
		if (!profile->threads[i].forgotten)
			births[n++] = (struct birth){profile->threads[i].pid,
			                             profile->threads[i].first_ns, NO_PROCESS};
	qsort(births, n, sizeof(*births), compare_births);
	*ret_count = n;
	return births;
}

// Forgets the processes that no thread is of, but for the first, which the profile is named after.
static void forget_processes(struct profile *profile)
{
	size_t n_births, kept = 0;
	_cleanup_free_ struct birth *births = sort_births(profile, &n_births);
	_cleanup_free_ bool *used = memory_alloc_zeroed(profile->n_processes, sizeof(*used));

	for (size_t i = 0, process = NO_PROCESS; i < n_births; i++) {
		if (births[i].process != NO_PROCESS)
			process = i;
		else if (process != NO_PROCESS && births[process].pid == births[i].pid)
			used[births[process].process] = true;
	}
	for (size_t i = 0; i < profile->n_processes; i++) {
		if (i == 0 || used[i])
			profile->processes[kept++] = profile->processes[i];
		else
			free(profile->processes[i].name);
	}
	profile->n_processes = kept;
}

// Moves the stacks that are in use next to each other, in their order.
static void compact_stacks(struct profile *profile, size_t n_kept)
{
	_cleanup_free_ uint32_t *ids = memory_alloc_zeroed(profile->n_stacks, sizeof(*ids));
	size_t n = 0, n_location_ids = 0;

	for (size_t i = 0; i < profile->n_samples; i++)
		if (profile->samples[i].count > 0)
			ids[profile->samples[i].stack] = 1;
	for (size_t i = 0; i < profile->n_stacks; i++) {
		struct stack stack = profile->stacks[i];
		if (i >= n_kept && !ids[i])
			continue;
		memmove(profile->location_ids + n_location_ids, profile->location_ids + stack.first,
		        stack.n_frames * sizeof(*profile->location_ids));
		stack.first = n_location_ids;
		n_location_ids += stack.n_frames;
		ids[i] = n;
		profile->stacks[n++] = stack;
	}
	profile->forgotten.stacks += profile->n_stacks - n;
	profile->n_stacks = n;
	profile->n_location_ids = n_location_ids;
	for (size_t i = 0; i < profile->n_samples; i++)
		if (profile->samples[i].count > 0)
			profile->samples[i].stack = ids[profile->samples[i].stack];
}

void profile_collect(struct profile *profile, bool *kept, size_t n_stacks)
{
	keep_last_samples(profile, kept);
	free_samples(profile, kept);
	free_threads(profile);
	forget_processes(profile);
	if (profile->location_ids)
		compact_stacks(profile, n_stacks);
	profile_reindex(profile);
	const size_t n_left = profile->n_samples - profile->n_free_samples;
	profile->collect_at = n_left > MIN_COLLECT / 2 ? 2 * n_left : MIN_COLLECT;
}
