// SPDX-License-Identifier: MIT
// timeline: keeps the spans of all threads for the formats that show time (speedscope, Firefox
// Profiler, Chrome trace, Sentry).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"

struct timeline {
	struct span_follower follower; // first: it keeps what it is told
	int64_t from_ns, to_ns;        // CLOCK_MONOTONIC: what lies outside is cut off
	struct span *spans;
	size_t n_spans, spans_capacity;
	size_t *group_sizes; // by thread: tasks that it stands for; NULL: none (timeline_group)
};

// The spans of one thread.
struct thread_spans {
	uint32_t thread;
	const struct span *spans; // in the order of time
	size_t count;
	size_t n_tasks; // how many it stands for; 0: only for itself
};

// Begins an empty timeline. `to_ns` may be INT64_MAX, `from_ns` INT64_MIN.
void timeline_init(struct timeline *timeline, int64_t from_ns, int64_t to_ns);
void timeline_deinit(struct timeline *timeline);

// Keeps the part of the span that lies in the timeline's time.
void timeline_add(struct timeline *timeline, const struct span *span);

// Does the same for the spans that threads are still in.
void timeline_add_open(struct timeline *timeline, const struct profile *profile);

// Keeps only spans of the samples that are selected, one bool for each.
void timeline_select(struct timeline *timeline, const bool *selected);

// Merges tasks that were created at the same place into one, if there
// are more than max_tasks: it shows one of them that runs, or one that waits while none runs.
// *ret_tasks, *ret_groups: how many became how many; 0: none did.
void timeline_group(struct timeline *timeline, const struct profile *profile, size_t max_tasks,
                    size_t *ret_tasks, size_t *ret_groups);

// Returns the parts of all threads that have one, by thread. *spans goes on from one to the next:
// the array has `*ret_count` items, and the caller frees it. Sorts the timeline.
struct thread_spans *timeline_by_thread(struct timeline *timeline, size_t *ret_count);
