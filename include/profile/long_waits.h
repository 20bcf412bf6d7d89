// SPDX-License-Identifier: MIT
// long_waits: finds which threads were blocked in one sleep for long (--waits), and makes each such
// sleep a sample of its own.
//
// A sleep lasts for as long as the kernel's count of the thread's runs does not change (sleeper.h).
// Its length is known to within a tick.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "profile.h"

struct long_waits {
	struct span_follower follower; // first: it keeps what is long enough
	int64_t min_ns;
	struct span *spans;
	size_t n_spans, spans_capacity;
	struct sample *samples; // of the view
};

void long_waits_init(struct long_waits *waits, int64_t min_ns);
void long_waits_deinit(struct long_waits *waits);

// Returns a view of the profile with only these waits as samples, of at most max_threads threads:
// those that waited longest at a time. Everything else is borrowed from the profile, and from
// waits. *ret_left_out: threads beyond max_threads.
struct profile long_waits_view(struct long_waits *waits, const struct profile *profile,
                               size_t max_threads, size_t *ret_threads, size_t *ret_left_out);
