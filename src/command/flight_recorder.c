// SPDX-License-Identifier: MIT
#include "flight_recorder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "memory.h"
#include "time_point.h"
#include "options.h"
#include "profile.h"
#include "recording.h"
#include "slice.h"
#include "timeline.h"
#include "window_ends.h"
#include "window_files.h"
#include "writer.h"

void flight_recorder_begin(struct flight_recorder *recorder, const struct options *options,
                           struct profile *profile, struct window_files *files)
{
	*recorder =
	    (struct flight_recorder){.options = options, .profile = profile, .files = files};
	ring_init(&recorder->ring, options->ring_ns, options->ring_bytes, profile);
}

void flight_recorder_deinit(struct flight_recorder *recorder)
{
	ring_deinit(&recorder->ring);
}

// Says what the window lacks. The caller frees it.
static char *describe_late(uint64_t n_late)
{
	if (n_late == 0)
		return memory_strdup("");
	return memory_printf(", but for the last moments of %" PRIu64
	                     " thread%s that %s not stopped yet",
	                     n_late, n_late == 1 ? "" : "s", n_late == 1 ? "has" : "have");
}

static char *describe(const struct profile *view, const char *why, const char *late)
{
	char from[TIME_POINT_TEXT_SIZE], to[TIME_POINT_TEXT_SIZE];

	time_point_format(view->start_time_ns, false, from);
	time_point_format(view->start_time_ns + view->duration_ns, false, to);
	return memory_printf("flight recorder: %s; from %s to %s%s", why, from, to, late);
}

static void write_view(struct flight_recorder *recorder, struct profile *view,
                       const struct slice *slice, const struct window_end *end)
{
	const bool shows_time = recorder->options->writer->shows_time;
	_cleanup_free_ char *late = describe_late(end->n_late);
	_cleanup_free_ char *comment = describe(view, end->why, late);
	struct timeline timeline = {0};

	if (!recorder->options->quiet)
		fprintf(stderr, "profiler: %s: the last %.3f s are written%s\n", end->why,
		        (double)view->duration_ns / (double)NS_PER_SECOND, late);
	if (shows_time)
		ring_timeline(&recorder->ring, slice, &timeline);
	window_files_write(recorder->files,
	                   &(struct window_part){
	                       .view = view,
	                       .whole = recorder->profile,
	                       .timeline = shows_time ? &timeline : NULL,
	                   },
	                   view->start_time_ns + view->duration_ns, comment);
	timeline_deinit(&timeline);
}

void flight_recorder_write(struct flight_recorder *recorder, const struct window_end *end)
{
	struct slice slice;
	struct profile view = ring_view(&recorder->ring, end->at_ns, &slice);

	if (view.n_samples == 0 || view.duration_ns < view.period_ns / 2)
		fprintf(stderr,
		        "profiler: %s, but the ring has fewer than two samples of a thread yet: "
		        "nothing is written\n",
		        end->why);
	else
		write_view(recorder, &view, &slice, end);
	slice_deinit(&slice);
}

void flight_recorder_trim(struct flight_recorder *recorder, int64_t now_ns)
{
	// One that is asked for may end as long ago.
	ring_trim(&recorder->ring, now_ns - WINDOW_ENDS_MAX_WAIT_NS);
}

void flight_recorder_end(const struct flight_recorder *recorder)
{
	if (!recorder->options->quiet && recorder->files->n_begun == 0)
		fprintf(stderr, "profiler: no window was asked for: nothing is written\n");
}
