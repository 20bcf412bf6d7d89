// SPDX-License-Identifier: MIT
#include "long_waits.h"

#include <stdlib.h>

#include "memory.h"

static void keep(struct span_follower *follower, const struct profile *profile, uint32_t thread,
                 const struct span *ended)
{
	struct long_waits *waits = (struct long_waits *)follower;

	(void)thread;
	if (ended->count == 0 || profile->samples[ended->sample].state == THREAD_RUNNING ||
	    ended->end_ns - ended->start_ns < waits->min_ns)
		return;
	*array_push(waits->spans, waits->n_spans, waits->spans_capacity) = *ended;
}

void long_waits_init(struct long_waits *waits, int64_t min_ns)
{
	*waits = (struct long_waits){.follower.changed = keep, .min_ns = min_ns};
}

void long_waits_deinit(struct long_waits *waits)
{
	free(waits->spans);
	free(waits->samples);
	*waits = (struct long_waits){0};
}

static int64_t length_of(const struct span *span)
{
	return span->end_ns - span->start_ns;
}

// Sorts the longest first.
static int compare(const void *a_pointer, const void *b_pointer)
{
	const int64_t a = length_of(a_pointer), b = length_of(b_pointer);

	return (a < b) - (a > b);
}

struct profile long_waits_view(struct long_waits *waits, const struct profile *profile,
                               size_t max_threads, size_t *ret_threads, size_t *ret_left_out)
{
	enum { UNSEEN, SHOWN, LEFT_OUT };
	_cleanup_free_ uint8_t *seen = memory_alloc_zeroed(profile->n_threads + 1, 1);
	struct profile view = *profile;
	size_t n_threads = 0, n_left_out = 0;

	if (waits->n_spans > 0)
		qsort(waits->spans, waits->n_spans, sizeof(*waits->spans), compare);
	waits->samples = memory_alloc_zeroed(waits->n_spans + 1, sizeof(*waits->samples));
	view.samples = waits->samples;
	view.n_samples = 0;
	for (size_t i = 0; i < waits->n_spans; i++) {
		const struct span *span = &waits->spans[i];
		if (seen[span->thread] == UNSEEN) {
			seen[span->thread] = n_threads < max_threads ? SHOWN : LEFT_OUT;
			n_threads += seen[span->thread] == SHOWN;
			n_left_out += seen[span->thread] == LEFT_OUT;
		}
		if (seen[span->thread] == LEFT_OUT)
			continue;
		struct sample *sample = &view.samples[view.n_samples++];
		*sample = profile->samples[span->sample];
		sample->count = span->count;
		sample->wall_ns = length_of(span);
		sample->cpu_ns = 0;
		sample->is_one_wait = true;
		sample->since_ns = span->start_ns;
	}
	*ret_threads = n_threads;
	*ret_left_out = n_left_out;
	return view;
}
