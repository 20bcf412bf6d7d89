// SPDX-License-Identifier: MIT
#include "flight_recorder.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "window_files.h"
#include "memory.h"
#include "time_point.h"
#include "options.h"
#include "profile.h"
#include "run_stats.h"
#include "slice.h"
#include "timeline.h"
#include "writer.h"

// How long a window that was asked for waits for threads that have not stopped yet.
static const int64_t MAX_WAIT_NS = NS_PER_SECOND;

void flight_recorder_begin(struct flight_recorder *recorder, const struct options *options,
                           struct profile *profile, const struct run_stats *stats,
                           struct window_files *files)
{
	*recorder = (struct flight_recorder){
	    .options = options,
	    .profile = profile,
	    .stats = stats,
	    .files = files,
	    .triggers = options->triggers,
	    .noticed_ns = INT64_MIN / 2,
	};
	if (options->has_regex[SELECTION_THREAD])
		recorder->triggers.thread_name = &options->regexes[SELECTION_THREAD];
	ring_init(&recorder->ring, options->ring_ns, options->ring_bytes, profile);
}

void flight_recorder_deinit(struct flight_recorder *recorder)
{
	ring_deinit(&recorder->ring);
	free(recorder->why);
}

// Returns how many threads have not stopped yet for a tick of the window that was asked for.
static size_t count_late(const struct flight_recorder *recorder)
{
	const struct profile *profile = recorder->profile;
	size_t n = 0;

	for (size_t i = 0; i < profile->n_threads; i++) {
		const struct thread *thread = &profile->threads[i];
		n += !thread->is_task && !thread->ended && !thread->forgotten &&
		     thread->last_ns < recorder->end_ns;
	}
	return n;
}

// Says what the window lacks. The caller frees it.
static char *describe_late(size_t n_late)
{
	if (n_late == 0)
		return memory_strdup("");
	return memory_printf(", but for the last moments of %zu thread%s that %s not stopped yet",
	                     n_late, n_late == 1 ? "" : "s", n_late == 1 ? "has" : "have");
}

static char *describe(const struct profile *view, const char *why, const char *late)
{
	char from[TIME_POINT_TEXT_SIZE], to[TIME_POINT_TEXT_SIZE];

	time_point_format(view->start_time_ns, false, from);
	time_point_format(view->start_time_ns + view->duration_ns, false, to);
	return memory_printf("flight recorder: %s; from %s to %s%s", why, from, to, late);
}

static void write_asked(struct flight_recorder *recorder, size_t n_late)
{
	const bool quiet = recorder->options->quiet;
	const char *why = recorder->why;
	struct slice slice;

	profile_follow_clock(recorder->profile);
	struct profile view = ring_view(&recorder->ring, recorder->end_ns, &slice);
	if (view.n_samples == 0 || view.duration_ns < view.period_ns / 2) {
		fprintf(stderr,
		        "profiler: %s, but the ring has fewer than two samples of a thread yet: "
		        "nothing is written\n",
		        why);
	} else {
		_cleanup_free_ char *late = describe_late(n_late);
		_cleanup_free_ char *comment = describe(&view, why, late);
		if (!quiet)
			fprintf(stderr, "profiler: %s: the last %.3f s are written%s\n", why,
			        (double)view.duration_ns / (double)NS_PER_SECOND, late);
		struct timeline timeline = {0};
		const bool shows_time = recorder->options->writer->shows_time;
		if (shows_time)
			ring_timeline(&recorder->ring, &slice, &timeline);
		window_files_write(recorder->files,
		                   &(struct window_part){
		                       .view = &view,
		                       .whole = recorder->profile,
		                       .timeline = shows_time ? &timeline : NULL,
		                   },
		                   view.start_time_ns + view.duration_ns, comment);
		timeline_deinit(&timeline);
	}
	slice_deinit(&slice);
	free(recorder->why);
	recorder->why = NULL;
}

// Notes that the window up to the last tick is to be written.
static void ask(struct flight_recorder *recorder, const char *why)
{
	if (recorder->why)
		write_asked(recorder, count_late(recorder));
	recorder->why = memory_strdup(why);
	recorder->end_ns = recorder->stats->last_ns;
}

void flight_recorder_ticked(struct flight_recorder *recorder, bool asked)
{
	const int64_t now_ns = recorder->stats->last_ns;

	window_files_poll(recorder->files, false);
	_cleanup_free_ char *why =
	    triggers_look(&recorder->triggers, recorder->profile, recorder->files->pid, now_ns);
	if (asked)
		ask(recorder, "SIGUSR1");
	// Not the same window again and again.
	if (why && now_ns - recorder->noticed_ns >= recorder->ring.window_ns) {
		recorder->noticed_ns = now_ns;
		ask(recorder, why);
	}
	const size_t n_late = recorder->why ? count_late(recorder) : 0;
	if (recorder->why && (n_late == 0 || now_ns - recorder->end_ns >= MAX_WAIT_NS))
		write_asked(recorder, n_late);
	ring_trim(&recorder->ring, recorder->why ? recorder->end_ns : now_ns);
}

void flight_recorder_end(struct flight_recorder *recorder, bool target_ended)
{
	// Who had not stopped by the end is counted all the same by now.
	if (recorder->why)
		write_asked(recorder, 0);
	if (target_ended && triggers_want_death(&recorder->triggers)) {
		ask(recorder, "the target has ended");
		write_asked(recorder, 0);
	}
	window_files_poll(recorder->files, true);
	if (!recorder->options->quiet && recorder->files->n_begun == 0)
		fprintf(stderr, "profiler: no window was asked for: nothing is written\n");
}
