// SPDX-License-Identifier: MIT
// figures_log: keeps what the kernel had counted for threads, over the time (thread_figures).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "profile.h"

struct slice;

struct figures_log {
	struct span_follower follower; // first: it keeps what it is told
	struct noted_figures {
		uint32_t thread;
		struct thread_figures figures;
	} * items; // of each thread in the order of time
	size_t count, capacity;
};

void figures_log_init(struct figures_log *log);
void figures_log_deinit(struct figures_log *log);

// Forgets what was counted before the time.
void figures_log_forget(struct figures_log *log, int64_t before_ns);

// Gives the slice the figures of its begin and end. What the kernel has counted since a thread's
// last ones is not known, while sampling goes on: the spans, of all threads, stand for it.
void figures_log_fill(const struct figures_log *log, const struct profile *profile,
                      const struct span *spans, size_t n, struct slice *slice);
