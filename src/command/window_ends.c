// SPDX-License-Identifier: MIT
#include "window_ends.h"

#include <stdlib.h>

#include "memory.h"
#include "options.h"
#include "profile.h"
#include "record_writer.h"
#include "recording.h"
#include "run_stats.h"
#include "writing.h"

#define LATE_NS NS_PER_SECOND // threads are waited for

void window_ends_begin(struct window_ends *ends, const struct options *options,
                       const struct profile *profile, const struct run_stats *stats,
                       struct record_writer *record, int pid)
{
	*ends = (struct window_ends){
	    .options = options,
	    .profile = profile,
	    .stats = stats,
	    .record = record,
	    .pid = pid,
	    .n_first_stacks = profile->n_stacks,
	    .triggers = options->triggers,
	    .noticed_ns = INT64_MIN / 2,
	};
	if (options->has_regex[SELECTION_THREAD])
		ends->triggers.thread_name = &options->regexes[SELECTION_THREAD];
}

void window_ends_deinit(struct window_ends *ends)
{
	free(take_pointer(ends->why));
}

// Returns how many threads have not stopped yet for a tick of the window that was asked for.
static size_t count_late(const struct window_ends *ends)
{
	const struct profile *profile = ends->profile;
	size_t n = 0;

	for (size_t i = 0; i < profile->n_threads; i++) {
		const struct thread *thread = &profile->threads[i];
		n += !thread->is_task && !thread->ended && !thread->forgotten &&
		     thread->last_ns < ends->end_ns;
	}
	return n;
}

// False: not yet, as the writer lags behind.
static bool tell(struct window_ends *ends, const char *why, int64_t end_ns, size_t n_late)
{
	return record_writer_end_window(
	    ends->record, &(struct window_end){.at_ns = end_ns - ends->profile->start_ns,
	                                       .n_late = n_late,
	                                       .why = why});
}

static bool tell_asked(struct window_ends *ends, size_t n_late)
{
	if (!tell(ends, ends->why, ends->end_ns, n_late))
		return false;
	free(take_pointer(ends->why));
	return true;
}

// Notes that the window up to the last tick is to be written.
static void ask(struct window_ends *ends, const char *why)
{
	if (ends->why)
		tell_asked(ends, count_late(ends));
	free(ends->why);
	ends->why = memory_strdup(why);
	ends->end_ns = ends->stats->last_ns;
}

static void look_for_asked(struct window_ends *ends, bool asked)
{
	const int64_t now_ns = ends->stats->last_ns;
	_cleanup_free_ char *why = triggers_look(&ends->triggers, ends->profile, ends->pid, now_ns);

	if (asked)
		ask(ends, "SIGUSR1");
	// Not the same window again and again.
	if (why && now_ns - ends->noticed_ns >= ends->options->ring_ns) {
		ends->noticed_ns = now_ns;
		ask(ends, why);
	}
	const size_t n_late = ends->why ? count_late(ends) : 0;
	if (ends->why && (n_late == 0 || now_ns - ends->end_ns >= LATE_NS))
		tell_asked(ends, n_late);
}

// Ends are at multiples of the time, so that windows do not drift.
static void look_at_time(struct window_ends *ends)
{
	const int64_t now_ns = ends->stats->last_ns;
	const int64_t n = (now_ns - ends->profile->start_ns) / ends->options->every_ns;

	if (n > ends->n_told && tell(ends, "", now_ns, 0))
		ends->n_told = n;
}

void window_ends_ticked(struct window_ends *ends, bool asked)
{
	if (ends->options->ring_ns)
		look_for_asked(ends, asked);
	else
		look_at_time(ends);
	record_writer_forget(ends->record, ends->n_first_stacks);
}

// Nothing is sampled any more: the writer is waited for, unless the user wants to end.
static void await_told(struct window_ends *ends)
{
	while (!tell_asked(ends, 0) && !writing_pause())
		;
}

void window_ends_finish(struct window_ends *ends, bool target_ended)
{
	// Who had not stopped by the end is counted all the same by now.
	if (ends->why)
		await_told(ends);
	if (target_ended && triggers_want_death(&ends->triggers)) {
		ask(ends, "the target has ended");
		await_told(ends);
	}
}
