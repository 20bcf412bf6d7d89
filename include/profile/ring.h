// SPDX-License-Identifier: MIT
// ring: keeps the last stretch of time in bounded memory, to be written when something has
// happened.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "profile.h"

struct slice;
struct timeline;

struct ring {
	struct span_follower follower; // first
	int64_t window_ns;
	size_t max_spans;
	struct span *spans; // those that have ended, oldest first, around the end of the array
	size_t first, count, capacity;
	int64_t lost_until_ns;   // spans that ended before then were dropped for lack of room
	struct profile *profile; // borrowed
};

// Call it before anything is counted. Keeps the spans of the last window_ns, in at most max_bytes.
void ring_init(struct ring *ring, int64_t window_ns, uint64_t max_bytes, struct profile *profile);
void ring_deinit(struct ring *ring);

// Drops what is older than the window that ends then.
void ring_trim(struct ring *ring, int64_t now_ns);

// Frees what neither the ring nor a thread's state needs of the profile, once it is much
// (profile_collect.h).
void ring_collect(struct ring *ring);

// Adds up what the ring holds of the window that ends at now_ns (and includes a tick at that time),
// including the spans that threads are still in. The caller has initialized *slice to nothing, and
// frees it. Returns the view to be written (slice.h).
struct profile ring_view(struct ring *ring, int64_t now_ns, struct slice *slice);

// Fills *ret with the slice's part of the time, for a format that shows time; the caller frees it.
void ring_timeline(const struct ring *ring, const struct slice *slice, struct timeline *ret);
