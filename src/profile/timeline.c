// SPDX-License-Identifier: MIT
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

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
			    .n_tasks =
			        timeline->group_sizes ? timeline->group_sizes[span->thread] : 0,
			};
		threads[count - 1].count++;
	}
	*ret_count = count;
	return threads;
}

// Shows tasks of the same origin as one part of a timeline: no viewer shows 10,000 rows.

enum { NO_CREATOR = UINT32_MAX };

// A task of the timeline.
struct member {
	uint32_t thread;
	int pid;
	const char *name;
	uint32_t creator; // location
};

struct grouping {
	struct timeline *timeline; // borrowed, as the next one
	const struct profile *profile;
	struct member *members;
	size_t n_members, capacity;
	uint32_t *group_of; // by thread: the one that stands for its group
	struct span *spans; // of the timeline that is made
	size_t n_spans, spans_capacity;
};

static uint32_t creator_of(const struct profile *profile, const struct span *span)
{
	const struct stack *stack = &profile->stacks[profile->samples[span->sample].stack];

	if (stack->n_frames == 0)
		return NO_CREATOR;
	const uint32_t root = profile->location_ids[stack->first + stack->n_frames - 1];
	return profile->locations[root].code == LOCATION_CREATOR ? root : NO_CREATOR;
}

static void find_members(struct grouping *grouping)
{
	const struct profile *profile = grouping->profile;
	_cleanup_free_ size_t *places =
	    memory_alloc_zeroed(profile->n_threads + 1, sizeof(*places));

	for (size_t i = 0; i < grouping->timeline->n_spans; i++) {
		const struct span *span = &grouping->timeline->spans[i];
		const struct thread *thread = &profile->threads[span->thread];
		if (!thread->is_task)
			continue;
		if (places[span->thread] == 0) {
			*array_push(grouping->members, grouping->n_members, grouping->capacity) =
			    (struct member){span->thread, thread->pid, thread->name, NO_CREATOR};
			places[span->thread] = grouping->n_members;
		}
		struct member *member = &grouping->members[places[span->thread] - 1];
		if (member->creator == NO_CREATOR) // an incomplete stack has none
			member->creator = creator_of(profile, span);
	}
}

static int compare_origins(const struct member *a, const struct member *b)
{
	const int order = strcmp(a->name, b->name);

	if (order)
		return order;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->creator > b->creator) - (a->creator < b->creator);
}

static int compare_members(const void *a_pointer, const void *b_pointer)
{
	const struct member *a = a_pointer, *b = b_pointer;
	const int order = compare_origins(a, b);

	return order ? order : (a->thread > b->thread) - (a->thread < b->thread);
}

// Makes the first of each group stand for it. Returns how many groups have several members.
static size_t name_groups(struct grouping *grouping, size_t *ret_tasks)
{
	const size_t n_threads = grouping->profile->n_threads;
	size_t n_groups = 0;

	qsort(grouping->members, grouping->n_members, sizeof(*grouping->members), compare_members);
	grouping->group_of = memory_alloc_zeroed(n_threads + 1, sizeof(*grouping->group_of));
	for (size_t i = 0; i < n_threads; i++)
		grouping->group_of[i] = (uint32_t)i;
	for (size_t i = 0, end; i < grouping->n_members; i = end) {
		for (end = i + 1; end < grouping->n_members; end++)
			if (compare_origins(&grouping->members[i], &grouping->members[end]) != 0)
				break;
		for (size_t j = i; j < end; j++)
			grouping->group_of[grouping->members[j].thread] =
			    grouping->members[i].thread;
		if (end - i == 1)
			continue;
		grouping->timeline->group_sizes[grouping->members[i].thread] = end - i;
		*ret_tasks += end - i;
		n_groups++;
	}
	return n_groups;
}

// Adds a part of a span to the group.
static void add_part(struct grouping *grouping, const struct span *whole, int64_t from_ns,
                     int64_t to_ns)
{
	struct span span = *whole;

	if (from_ns >= to_ns)
		return;
	span.thread = grouping->group_of[whole->thread];
	span.count = span_ticks_before(whole, to_ns) - span_ticks_before(whole, from_ns);
	span.count += span.count == 0; // a part of a tick is shown, too
	span.start_ns = from_ns;
	span.end_ns = to_ns;
	*array_push(grouping->spans, grouping->n_spans, grouping->spans_capacity) = span;
}

static bool runs(const struct grouping *grouping, const struct span *span)
{
	return grouping->profile->samples[span->sample].state == THREAD_RUNNING;
}

// Adds a group's spans, by their starts: first those of tasks that run, each from where the
// last one ended; then, between them, those of tasks that wait.
static void add_group(struct grouping *grouping, const struct span *spans, size_t n)
{
	const size_t first = grouping->n_spans;
	int64_t until_ns = INT64_MIN;

	for (size_t i = 0; i < n; i++) {
		if (!runs(grouping, &spans[i]) || spans[i].end_ns <= until_ns)
			continue;
		add_part(grouping, &spans[i],
		         spans[i].start_ns > until_ns ? spans[i].start_ns : until_ns,
		         spans[i].end_ns);
		until_ns = spans[i].end_ns;
	}
	const size_t end = grouping->n_spans;
	size_t next = first; // of those that run, the first one that ends after until_ns
	until_ns = INT64_MIN;
	for (size_t i = 0; i < n; i++) {
		if (runs(grouping, &spans[i]) || spans[i].end_ns <= until_ns)
			continue;
		if (spans[i].start_ns > until_ns)
			until_ns = spans[i].start_ns;
		while (until_ns < spans[i].end_ns) {
			while (next < end && grouping->spans[next].end_ns <= until_ns)
				next++;
			const bool is_last =
			    next == end || grouping->spans[next].start_ns >= spans[i].end_ns;
			const int64_t to_ns =
			    is_last ? spans[i].end_ns : grouping->spans[next].start_ns;
			const int64_t behind_ns = is_last ? to_ns : grouping->spans[next].end_ns;
			add_part(grouping, &spans[i], until_ns, to_ns);
			until_ns = behind_ns;
		}
	}
}

// Merges the spans of each group into one row.
static void merge_groups(struct grouping *grouping)
{
	struct timeline *timeline = grouping->timeline;
	size_t n;

	for (size_t i = 0; i < timeline->n_spans; i++)
		timeline->spans[i].thread = grouping->group_of[timeline->spans[i].thread];
	_cleanup_free_ struct thread_spans *threads = timeline_by_thread(timeline, &n);
	for (size_t i = 0; i < n; i++) {
		if (threads[i].n_tasks > 0) {
			add_group(grouping, threads[i].spans, threads[i].count);
			continue;
		}
		for (size_t j = 0; j < threads[i].count; j++)
			*array_push(grouping->spans, grouping->n_spans, grouping->spans_capacity) =
			    threads[i].spans[j];
	}
	free(timeline->spans);
	timeline->spans = grouping->spans;
	timeline->n_spans = grouping->n_spans;
	timeline->spans_capacity = grouping->spans_capacity;
}

void timeline_group(struct timeline *timeline, const struct profile *profile, size_t max_tasks,
                    size_t *ret_tasks, size_t *ret_groups)
{
	struct grouping grouping = {.timeline = timeline, .profile = profile};

	*ret_tasks = *ret_groups = 0;
	find_members(&grouping);
	if (grouping.n_members > max_tasks) {
		timeline->group_sizes =
		    memory_alloc_zeroed(profile->n_threads + 1, sizeof(*timeline->group_sizes));
		*ret_groups = name_groups(&grouping, ret_tasks);
		merge_groups(&grouping);
	}
	free(grouping.members);
	free(grouping.group_of);
}
