// SPDX-License-Identifier: MIT
#include "slice.h"

#include <stdlib.h>

#include "memory.h"

static void add_ended(struct span_follower *follower, const struct profile *profile,
                      uint32_t thread, const struct span *ended)
{
	(void)thread;
	slice_add((struct slice *)follower, profile, ended);
}

// Tick k of n, from 1, is at start + k * (end - start) / n.
uint64_t span_ticks_before(const struct span *span, int64_t ns)
{
	if (ns <= span->start_ns)
		return 0;
	if (ns > span->end_ns)
		return span->count;
	const uint64_t length_ns = span->end_ns - span->start_ns, into_ns = ns - span->start_ns;
	const unsigned __int128 scaled = (unsigned __int128)span->count * into_ns;
	return (uint64_t)((scaled + length_ns - 1) / length_ns) - 1;
}

// The wall time of the first `ticks` ticks.
static int64_t wall_of(const struct span *span, uint64_t ticks)
{
	const uint64_t length_ns = span->end_ns - span->start_ns;

	return (int64_t)((unsigned __int128)length_ns * ticks / span->count);
}

void slice_add(struct slice *slice, const struct profile *profile, const struct span *span)
{
	if (span->count == 0)
		return;
	const uint64_t first = span_ticks_before(span, slice->from_ns);
	const uint64_t after = span_ticks_before(span, slice->to_ns);
	if (after <= first)
		return;
	while (slice->n_sums <= span->sample) {
		struct sample *sum = array_push(slice->sums, slice->n_sums, slice->sums_capacity);
		*sum = (struct sample){0};
	}
	struct sample *sum = &slice->sums[span->sample];
	const int64_t wall_ns = wall_of(span, after) - wall_of(span, first);
	sum->count += after - first;
	sum->wall_ns += wall_ns;
	if (profile->samples[span->sample].state == THREAD_RUNNING)
		sum->cpu_ns += wall_ns;
}

static struct thread_figures between(const struct thread_figures *a, const struct thread_figures *b,
                                     int64_t at_ns)
{
	const double part = (double)(at_ns - a->at_ns) / (double)(b->at_ns - a->at_ns);

	return (struct thread_figures){
	    .at_ns = at_ns,
	    .cpu_ns = a->cpu_ns + (int64_t)(part * (double)(b->cpu_ns - a->cpu_ns)),
	    .delay_ns = a->delay_ns + (int64_t)(part * (double)(b->delay_ns - a->delay_ns)),
	    .held_ns = a->held_ns + (int64_t)(part * (double)(b->held_ns - a->held_ns)),
	    .displaced_ns =
	        a->displaced_ns + (int64_t)(part * (double)(b->displaced_ns - a->displaced_ns)),
	};
}

static void fit_figures(struct slice *slice, uint32_t thread)
{
	if (thread < slice->n_figures)
		return;
	slice->figures = memory_grow(slice->figures, &slice->figures_capacity, thread + 1,
	                             sizeof(*slice->figures));
	slice->last_figures = memory_grow(slice->last_figures, &slice->last_capacity, thread + 1,
	                                  sizeof(*slice->last_figures));
	while (slice->n_figures <= thread) {
		slice->last_figures[slice->n_figures] = (struct thread_figures){0};
		slice->figures[slice->n_figures++] = (struct figures_range){0};
	}
}

// Between two figures the thread is taken to have used its CPU evenly.
static void add_figures(struct span_follower *follower, const struct profile *profile,
                        uint32_t thread, const struct thread_figures *figures)
{
	struct slice *slice = (struct slice *)follower;

	(void)profile;
	fit_figures(slice, thread);
	struct figures_range *range = &slice->figures[thread];
	const struct thread_figures last = slice->last_figures[thread];

	slice->last_figures[thread] = *figures;
	if (last.at_ns == 0 || figures->at_ns <= slice->from_ns || figures->at_ns <= last.at_ns ||
	    figures->cpu_ns < last.cpu_ns) {
		range->from = range->to = *figures;
		return;
	}
	if (last.at_ns < slice->from_ns)
		range->from = between(&last, figures, slice->from_ns);
	if (last.at_ns < slice->to_ns)
		range->to = figures->at_ns <= slice->to_ns ? *figures
		                                           : between(&last, figures, slice->to_ns);
}

void slice_init(struct slice *slice, int64_t from_ns, int64_t to_ns)
{
	*slice = (struct slice){
	    .follower.changed = add_ended,
	    .follower.figures_noted = add_figures,
	    .from_ns = from_ns,
	    .to_ns = to_ns,
	};
}

void slice_deinit(struct slice *slice)
{
	free(slice->sums);
	free(slice->samples);
	free(slice->figures);
	free(slice->last_figures);
	*slice = (struct slice){0};
}

// A thread that sleeps has no new figures.
static void extend_figures(struct slice *slice, const struct profile *profile)
{
	for (size_t i = 0; i < slice->n_figures && i < profile->n_threads; i++) {
		struct figures_range *range = &slice->figures[i];
		const int64_t last_ns = profile->threads[i].last_ns;
		const int64_t end_ns = last_ns < slice->to_ns ? last_ns : slice->to_ns;
		if (range->from.at_ns == 0)
			continue;
		if (range->from.at_ns < slice->from_ns)
			range->from.at_ns = slice->from_ns;
		if (range->to.at_ns < end_ns)
			range->to.at_ns = end_ns;
	}
}

struct profile slice_view(struct slice *slice, const struct profile *profile)
{
	static const struct figures_range none[1];
	struct profile view = *profile;

	free(slice->samples);
	slice->samples = memory_alloc_zeroed(slice->n_sums, sizeof(*slice->samples));
	view.samples = slice->samples;
	view.n_samples = 0;
	for (size_t i = 0; i < slice->n_sums; i++) {
		const struct sample *sum = &slice->sums[i];
		if (sum->count == 0)
			continue;
		struct sample *sample = &view.samples[view.n_samples++];
		*sample = profile->samples[i];
		sample->count = sum->count;
		sample->wall_ns = sum->wall_ns;
		sample->cpu_ns = sum->cpu_ns;
	}
	extend_figures(slice, profile);
	view.figures = slice->figures ? slice->figures : none;
	view.n_figures = slice->n_figures;
	const int64_t end_ns = profile->start_ns + profile->duration_ns;
	const int64_t from_ns =
	    slice->from_ns > profile->start_ns ? slice->from_ns : profile->start_ns;
	const int64_t to_ns = slice->to_ns < end_ns ? slice->to_ns : end_ns;
	view.start_time_ns += from_ns - profile->start_ns;
	view.duration_ns = to_ns > from_ns ? to_ns - from_ns : 0;
	return view;
}
