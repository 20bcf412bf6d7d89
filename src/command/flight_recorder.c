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
}

static char *describe(const struct profile *view, const char *why)
{
	char from[TIME_POINT_TEXT_SIZE], to[TIME_POINT_TEXT_SIZE];

	time_point_format(view->start_time_ns, false, from);
	time_point_format(view->start_time_ns + view->duration_ns, false, to);
	return memory_printf("flight recorder: %s; from %s to %s", why, from, to);
}

static void write_window(struct flight_recorder *recorder, const char *why)
{
	const int64_t now_ns = recorder->stats->last_ns;
	const bool quiet = recorder->options->quiet;
	struct slice slice;

	const struct profile view = ring_view(&recorder->ring, now_ns, &slice);
	if (view.n_samples == 0 || view.duration_ns < view.period_ns / 2) {
		fprintf(stderr,
		        "profiler: %s, but there are less than two ticks in the ring yet: nothing "
		        "is written\n",
		        why);
	} else {
		_cleanup_free_ char *comment = describe(&view, why);
		if (!quiet)
			fprintf(stderr, "profiler: %s: the last %.3f s are written\n", why,
			        (double)view.duration_ns / (double)NS_PER_SECOND);
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
}

void flight_recorder_ticked(struct flight_recorder *recorder, bool asked)
{
	const int64_t now_ns = recorder->stats->last_ns;

	window_files_poll(recorder->files, false);
	_cleanup_free_ char *why =
	    triggers_look(&recorder->triggers, recorder->profile, recorder->files->pid, now_ns);
	if (asked)
		write_window(recorder, "SIGUSR1");
	// Not the same window again and again.
	if (why && now_ns - recorder->noticed_ns >= recorder->ring.window_ns) {
		recorder->noticed_ns = now_ns;
		write_window(recorder, why);
	}
	ring_trim(&recorder->ring, now_ns);
}

void flight_recorder_end(struct flight_recorder *recorder, bool target_ended)
{
	if (target_ended && triggers_want_death(&recorder->triggers))
		write_window(recorder, "the target has ended");
	window_files_poll(recorder->files, true);
	if (!recorder->options->quiet && recorder->files->n_begun == 0)
		fprintf(stderr, "profiler: no window was asked for: nothing is written\n");
}
