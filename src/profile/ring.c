// SPDX-License-Identifier: MIT
#include "ring.h"

#include <stdlib.h>

#include "memory.h"
#include "profile_collect.h"
#include "slice.h"
#include "timeline.h"

enum { MIN_SPANS = 1024 };

static struct span *at(const struct ring *ring, size_t i)
{
	return &ring->spans[(ring->first + i) % ring->capacity];
}

static void drop_oldest(struct ring *ring)
{
	ring->first = (ring->first + 1) % ring->capacity;
	ring->count--;
}

// Doubles the array, and lays the ring out from its start.
static void grow(struct ring *ring)
{
	size_t capacity = ring->capacity ? ring->capacity * 2 : MIN_SPANS;

	if (capacity > ring->max_spans)
		capacity = ring->max_spans;
	struct span *spans = memory_alloc_zeroed(capacity, sizeof(*spans));
	for (size_t i = 0; i < ring->count; i++)
		spans[i] = *at(ring, i);
	free(ring->spans);
	ring->spans = spans;
	ring->capacity = capacity;
	ring->first = 0;
}

static void add_ended(struct span_follower *follower, const struct profile *profile,
                      uint32_t thread, const struct span *ended)
{
	struct ring *ring = (struct ring *)follower;

	(void)profile, (void)thread;
	if (ended->count == 0)
		return;
	if (ring->count == ring->capacity && ring->capacity < ring->max_spans)
		grow(ring);
	if (ring->count == ring->capacity) {
		ring->lost_until_ns = at(ring, 0)->end_ns;
		drop_oldest(ring);
	}
	ring->count++;
	*at(ring, ring->count - 1) = *ended;
}

void ring_init(struct ring *ring, int64_t window_ns, uint64_t max_bytes, struct profile *profile)
{
	const size_t max_spans = max_bytes / sizeof(struct span);

	*ring = (struct ring){
	    .follower.changed = add_ended,
	    .window_ns = window_ns,
	    .max_spans = max_spans > MIN_SPANS ? max_spans : MIN_SPANS,
	    .lost_until_ns = INT64_MIN,
	    .profile = profile,
	};
	profile_follow(profile, &ring->follower);
}

void ring_deinit(struct ring *ring)
{
	free(ring->spans);
	*ring = (struct ring){0};
}

void ring_collect(struct ring *ring)
{
	struct profile *profile = ring->profile;

	if (!profile_collect_is_due(profile))
		return;
	_cleanup_free_ bool *kept = memory_alloc_zeroed(profile->n_samples, sizeof(*kept));

	for (size_t i = 0; i < ring->count; i++)
		kept[at(ring, i)->sample] = true;
	for (size_t i = 0; i < profile->n_threads; i++)
		if (profile->threads[i].span.count > 0)
			kept[profile->threads[i].span.sample] = true;
	profile_collect(profile, kept, 0);
}

void ring_trim(struct ring *ring, int64_t now_ns)
{
	while (ring->count > 0 && at(ring, 0)->end_ns < now_ns - ring->window_ns)
		drop_oldest(ring);
}

struct profile ring_view(struct ring *ring, int64_t now_ns, struct slice *slice)
{
	const struct profile *profile = ring->profile;
	int64_t from_ns = now_ns - ring->window_ns;

	// A tick at the very end belongs to it.
	if (from_ns <= ring->lost_until_ns)
		from_ns = ring->lost_until_ns + 1;
	slice_init(slice, from_ns, now_ns + 1);
	for (size_t i = 0; i < ring->count; i++)
		slice_add(slice, profile, at(ring, i));
	for (size_t i = 0; i < profile->n_threads; i++) {
		const struct span span = profile_open_span(profile, i);
		slice_add(slice, profile, &span);
	}
	struct profile whole = *profile;
	whole.duration_ns = now_ns - profile->start_ns;
	return slice_view(slice, &whole);
}

void ring_timeline(const struct ring *ring, const struct slice *slice, struct timeline *ret)
{
	timeline_init(ret, slice->from_ns, slice->to_ns);
	for (size_t i = 0; i < ring->count; i++)
		timeline_add(ret, at(ring, i));
	timeline_add_open(ret, ring->profile);
}
