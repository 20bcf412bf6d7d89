#include "flight.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "window_files.h"
#include "memory.h"
#include "moment.h"
#include "options.h"
#include "profile.h"
#include "run.h"
#include "slice.h"
#include "timeline.h"
#include "writer.h"

void flight_begin(struct flight *flight, const struct options *options, struct profile *profile,
                  const struct run *run, struct window_files *files)
{
	*flight = (struct flight){
	    .options = options,
	    .profile = profile,
	    .run = run,
	    .files = files,
	    .triggers = options->triggers,
	    .noticed_ns = INT64_MIN / 2,
	};
	if (options->has_regex[SELECTION_THREAD])
		flight->triggers.thread_name = &options->regexes[SELECTION_THREAD];
	ring_init(&flight->ring, options->ring_ns, options->ring_bytes, profile);
}

void flight_deinit(struct flight *flight)
{
	ring_deinit(&flight->ring);
}

static char *describe(const struct profile *view, const char *why)
{
	char from[MOMENT_TEXT_SIZE], to[MOMENT_TEXT_SIZE];

	moment_format(view->start_time_ns, false, from);
	moment_format(view->start_time_ns + view->duration_ns, false, to);
	return memory_printf("flight recorder: %s; from %s to %s", why, from, to);
}

static void dump(struct flight *flight, const char *why)
{
	const int64_t now_ns = flight->run->last_ns;
	const bool quiet = flight->options->quiet;
	struct slice slice;

	const struct profile view = ring_view(&flight->ring, now_ns, &slice);
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
		const bool shows_time = flight->options->writer->shows_time;
		if (shows_time)
			ring_timeline(&flight->ring, &slice, &timeline);
		window_files_write(flight->files,
		                   &(struct window_part){
		                       .view = &view,
		                       .whole = flight->profile,
		                       .timeline = shows_time ? &timeline : NULL,
		                   },
		                   view.start_time_ns + view.duration_ns, comment);
		timeline_deinit(&timeline);
	}
	slice_deinit(&slice);
}

void flight_ticked(struct flight *flight, bool asked)
{
	const int64_t now_ns = flight->run->last_ns;

	window_files_poll(flight->files, false);
	_cleanup_free_ char *why =
	    triggers_look(&flight->triggers, flight->profile, flight->files->pid, now_ns);
	if (asked)
		dump(flight, "SIGUSR1");
	// Not the same window again and again.
	if (why && now_ns - flight->noticed_ns >= flight->ring.window_ns) {
		flight->noticed_ns = now_ns;
		dump(flight, why);
	}
	ring_trim(&flight->ring, now_ns);
}

void flight_end(struct flight *flight, bool target_ended)
{
	if (target_ended && triggers_want_death(&flight->triggers))
		dump(flight, "the target has ended");
	window_files_poll(flight->files, true);
	if (!flight->options->quiet && flight->files->n_begun == 0)
		fprintf(stderr, "profiler: no window was asked for: nothing is written\n");
}
