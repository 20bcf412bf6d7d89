// SPDX-License-Identifier: MIT
#include "timeline.h"

#include <stdlib.h>

#include "memory.h"
#include "slice.h"

void timeline_add(struct timeline *timeline, const struct span *whole)
{
	struct span span = *whole;

	if (span.count == 0 || span.end_ns <= timeline->from_ns || span.start_ns >= timeline->to_ns)
		return;
	span.count =
	    span_ticks_before(whole, timeline->to_ns) - span_ticks_before(whole, timeline->from_ns);
	span.start_ns = span.start_ns < timeline->from_ns ? timeline->from_ns : span.start_ns;
	span.end_ns = span.end_ns > timeline->to_ns ? timeline->to_ns : span.end_ns;
	*array_push(timeline->spans, timeline->n_spans, timeline->spans_capacity) = span;
}

void timeline_add_open(struct timeline *timeline, const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_threads; i++) {
		const struct span span = profile_open_span(profile, i);
		timeline_add(timeline, &span);
	}
}

static void keep(struct span_follower *follower, const struct profile *profile, uint32_t thread,
                 const struct span *ended)
{
	(void)profile;
	(void)thread;
	timeline_add((struct timeline *)follower, ended);
}

void timeline_init(struct timeline *timeline, int64_t from_ns, int64_t to_ns)
{
	*timeline = (struct timeline){
	    .follower.changed = keep,
	    .from_ns = from_ns,
	    .to_ns = to_ns,
	};
}

void timeline_deinit(struct timeline *timeline)
{
	free(timeline->spans);
	free(timeline->group_sizes);
	*timeline = (struct timeline){0};
}

void timeline_select(struct timeline *timeline, const bool *selected)
{
	size_t kept = 0;

	for (size_t i = 0; i < timeline->n_spans; i++)
		if (selected[timeline->spans[i].sample])
			timeline->spans[kept++] = timeline->spans[i];
	timeline->n_spans = kept;
}

static int compare(const void *a_pointer, const void *b_pointer)
{
	const struct span *a = a_pointer, *b = b_pointer;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

struct thread_spans *timeline_by_thread(struct timeline *timeline, size_t *ret_count)
{
	struct thread_spans *threads = NULL;
	size_t count = 0, capacity = 0;

	if (timeline->n_spans > 0)
		qsort(timeline->spans, timeline->n_spans, sizeof(*timeline->spans), compare);
	for (size_t i = 0; i < timeline->n_spans; i++) {
		const struct span *span = &timeline->spans[i];
		if (count == 0 || threads[count - 1].thread != span->thread)
			*array_push(threads, count, capacity) = (struct thread_spans){
			    .thread = span->thread,
			    .spans = span,
			    .n_goroutines =
			        timeline->group_sizes ? timeline->group_sizes[span->thread] : 0,
			};
		threads[count - 1].count++;
	}
	*ret_count = count;
	return threads;
}
