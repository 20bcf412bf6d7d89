// SPDX-License-Identifier: MIT
#include "figures_log.h"

#include <stdlib.h>

#include "memory.h"
#include "order.h"
#include "slice.h"

static void add(struct span_follower *follower, const struct profile *profile, uint32_t thread,
                const struct thread_figures *figures)
{
	struct figures_log *log = (struct figures_log *)follower;

	(void)profile;
	*array_push(log->items, log->count, log->capacity) =
	    (struct noted_figures){.thread = thread, .figures = *figures};
}

void figures_log_init(struct figures_log *log)
{
	*log = (struct figures_log){.follower.figures_noted = add};
}

void figures_log_deinit(struct figures_log *log)
{
	free(log->items);
	*log = (struct figures_log){0};
}

void figures_log_forget(struct figures_log *log, int64_t before_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < log->count; i++)
		if (log->items[i].figures.at_ns >= before_ns)
			log->items[kept++] = log->items[i];
	log->count = kept;
}

// Adds the span, if it lies after the last figures.
static void add_since(struct slice *slice, const struct profile *profile, const struct span *span)
{
	if (span->thread >= slice->n_figures || slice->figures[span->thread].from.at_ns == 0)
		return;
	struct figures_range *range = &slice->figures[span->thread];
	const int64_t told_ns = slice->last_figures[span->thread].at_ns;
	const int64_t from_ns = order_max_ns(span->start_ns, order_max_ns(told_ns, slice->from_ns));
	const int64_t to_ns = span->end_ns < slice->to_ns ? span->end_ns : slice->to_ns;
	const enum thread_state state = profile->samples[span->sample].state;

	if (range->from.at_ns < slice->from_ns && told_ns < slice->from_ns)
		range->from.at_ns = range->to.at_ns = slice->from_ns;
	if (to_ns <= from_ns)
		return;
	range->to.at_ns = order_max_ns(range->to.at_ns, to_ns);
	range->to.cpu_ns += state == THREAD_RUNNING ? to_ns - from_ns : 0;
	range->to.delay_ns += state == THREAD_RUNNABLE ? to_ns - from_ns : 0;
}

void figures_log_fill(const struct figures_log *log, const struct profile *profile,
                      const struct span *spans, size_t n, struct slice *slice)
{
	for (size_t i = 0; i < log->count; i++)
		slice->follower.figures_noted(&slice->follower, profile, log->items[i].thread,
		                              &log->items[i].figures);
	for (size_t i = 0; i < n; i++)
		add_since(slice, profile, &spans[i]);
}
