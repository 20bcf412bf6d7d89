// SPDX-License-Identifier: MIT
// ring: the last stretch of time, kept in bounded memory, to be written when something has
// happened.
#pragma once

#include <stdbool.h>
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
	int64_t lost_until_ns;   // what ended before is not there any more for want of room
	size_t n_first_stacks;   // those before the first tick
	size_t collect_at;       // of samples: then what nobody needs is forgotten
	struct profile *profile; // borrowed
};

// Follows the profile from before its first tick on: keeps spans of the last window_ns, and of at
// most max_bytes; what in the profile is needed for neither these nor sampling is forgotten.
void ring_init(struct ring *ring, int64_t window_ns, uint64_t max_bytes, struct profile *profile);
void ring_deinit(struct ring *ring);

// After each tick: forgets what is older than the window. Not to be called in the midst of a tick.
void ring_trim(struct ring *ring, int64_t now_ns);

// Adds up what the ring holds of the window that ends at now_ns (and includes a tick at that time),
// threads' spans that last still among it; the caller has initialized *slice to nothing and frees
// it. Returns the view to be written (slice.h).
struct profile ring_view(struct ring *ring, int64_t now_ns, struct slice *slice);

// The same part of the time as the slice's, for a format that shows time; the caller frees it.
void ring_timeline(const struct ring *ring, const struct slice *slice, struct timeline *ret);
