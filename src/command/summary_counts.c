// SPDX-License-Identifier: MIT
#include "summary_counts.h"

#include <string.h>

#include "labels.h"

static void add_sample(struct summary_counts *counts, const struct profile *profile,
                       const struct sample *sample)
{
	counts->running_ns += sample->cpu_ns;
	if (profile_wait_is_folded(&profile->waits[sample->wait]))
		counts->folded_waits += sample->count;
	if (sample->labels != LABELS_NONE && labels_lack(profile->labels[sample->labels]))
		counts->lack_labels += sample->count;
	if (sample->count == 0)
		return;
	counts->by_end[profile->stacks[sample->stack].end] += sample->count;
	counts->all_slept &= sample->state == THREAD_SLEEPING || sample->state == THREAD_DISK;
}

static void add_thread(struct summary_counts *counts, const struct thread *thread)
{
	counts->knows_cpu |= thread->kernel_cpu_ns >= 0;
	counts->cpu_ns += thread->kernel_cpu_ns > 0 ? thread->kernel_cpu_ns : 0;
	counts->delay_ns += thread->kernel_delay_ns > 0 ? thread->kernel_delay_ns : 0;
}

struct summary_counts summary_count(const struct profile *profile)
{
	const struct profile_totals *forgotten = &profile->forgotten;
	struct summary_counts counts = {
	    .n_threads = profile->n_threads - profile->n_free_threads + (size_t)forgotten->threads,
	    .n_stacks = profile->n_stacks + (size_t)forgotten->stacks,
	    .all_slept = true,
	    .running_ns = forgotten->cpu_ns,
	    .cpu_ns = forgotten->kernel_cpu_ns,
	    .delay_ns = forgotten->kernel_delay_ns,
	};

	memcpy(counts.by_end, forgotten->by_end, sizeof(counts.by_end));
	for (int end = 0; end < N_STACK_ENDS; end++)
		counts.all_slept &= forgotten->by_end[end] == 0; // their states are forgotten, too
	for (size_t i = 0; i < profile->n_samples; i++)
		add_sample(&counts, profile, &profile->samples[i]);
	for (size_t i = 0; i < profile->n_threads; i++)
		add_thread(&counts, &profile->threads[i]);
	for (int end = 0; end < N_STACK_ENDS; end++)
		counts.truncated += end == STACK_COMPLETE ? 0 : counts.by_end[end];
	return counts;
}
