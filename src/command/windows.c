// SPDX-License-Identifier: MIT
#include "windows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "cpu_waits.h"
#include "error.h"
#include "memory.h"
#include "metrics.h"
#include "profile.h"
#include "profile_collect.h"
#include "recording.h"
#include "slice.h"
#include "supervise.h"
#include "time_point.h"
#include "window_ends.h"
#include "writer.h"

bool windows_are_asked(const struct options *options)
{
	return options->ring_ns || options->every_ns;
}

struct error *windows_open(struct windows *windows, const struct options *options,
                           struct recording *recording, const struct run_stats *stats,
                           const struct supervise_writer *process)
{
	const bool pushes = options->push.destination.url != NULL;

	*windows = (struct windows){
	    .options = *options,
	    .recording = recording,
	    .stats = stats,
	    .process = process,
	};
	struct error *error =
	    pushes && !options->output ? pusher_find_spool(options, &windows->spool) : NULL;
	if (windows->spool)
		windows->options.output = windows->spool;
	if (!error)
		error = window_files_init(&windows->files, &windows->options, &recording->modules,
		                          &process->ends);
	// The uploader begins while there is little in memory that it would share.
	if (!error && pushes)
		error = pusher_start(&windows->pusher, &windows->options, &process->ends);
	return error;
}

void windows_begin(struct windows *windows)
{
	const struct options *options = &windows->options;
	struct recording *recording = windows->recording;
	struct profile *profile = &recording->profile;

	windows->files.pid = recording->pid;
	pusher_name_target(&windows->pusher, recording->pid,
	                   options->pid ? NULL : options->command[0]);
	windows->files.labels = (const char *const *)windows->pusher.labels;
	windows->profile = profile;
	windows->start_ns = profile->start_ns;
	if (options->ring_ns) {
		ring_init(&windows->ring, options->ring_ns, options->ring_bytes, profile);
		return;
	}
	timeline_init(&windows->spans, INT64_MIN, INT64_MAX);
	if (options->writer->shows_time)
		profile_follow(profile, &windows->spans.follower);
}

static void write_metrics(struct windows *windows, bool ended)
{
	const struct recording *recording = windows->recording;

	if (!windows->options.metrics || windows->metrics_error)
		return;
	windows->metrics_error =
	    metrics_write(windows->options.metrics,
	                  &(struct metrics){
	                      .pid = recording->pid,
	                      .sampler = windows->process->worker,
	                      .ended = ended,
	                      .stats = windows->stats,
	                      .profile = windows->profile,
	                      .cpus = cpu_log_between(&recording->cpu_log, 0, INT64_MAX),
	                      .push = windows->pusher.counts,
	                      .lost_windows = windows->files.n_lost,
	                      .lost_samples = windows->files.n_lost_samples,
	                  });
}

static void fit_written(struct windows *windows)
{
	const size_t n = windows->profile->n_samples;

	windows->written = memory_grow(windows->written, &windows->written_capacity, n + 1,
	                               sizeof(*windows->written));
	while (windows->n_written < n)
		windows->written[windows->n_written++] = (struct sample){0};
}

// The samples that have grown since the last window, by what.
static void take_samples(struct windows *windows, struct window_back *ret)
{
	const struct profile *profile = windows->profile;

	ret->samples = memory_alloc_zeroed(profile->n_samples, sizeof(*ret->samples));
	ret->ids = memory_alloc_zeroed(profile->n_samples, sizeof(*ret->ids));
	fit_written(windows);
	for (size_t i = 0; i < profile->n_samples; i++) {
		struct sample *written = &windows->written[i];
		const struct sample *sum = &profile->samples[i];
		if (sum->count == written->count)
			continue;
		struct sample *sample = &ret->samples[ret->n_samples];
		*sample = *sum;
		sample->count -= written->count;
		sample->wall_ns -= written->wall_ns;
		sample->cpu_ns -= written->cpu_ns;
		ret->ids[ret->n_samples++] = i;
		*written = *sum;
	}
}

// What the kernel has counted since the last window, by thread.
static void take_figures(struct windows *windows, struct window_back *ret)
{
	const struct profile *profile = windows->profile;
	const size_t n = profile->n_threads;

	ret->figures = memory_alloc_zeroed(n + 1, sizeof(*ret->figures));
	ret->n_figures = n;
	windows->figures = memory_grow(windows->figures, &windows->figures_capacity, n + 1,
	                               sizeof(*windows->figures));
	for (size_t i = 0; i < n; i++) {
		struct figures_range *range = &ret->figures[i];
		profile_figures(profile, i, &range->from, &range->to);
		if (i < windows->n_figures && windows->figures[i].at_ns > range->from.at_ns)
			range->from = windows->figures[i];
		windows->figures[i] = range->to;
	}
	windows->n_figures = n;
}

// The window at hand gets what one had that could not be written.
static void take_back(struct windows *windows, const struct window_back *back)
{
	for (size_t i = 0; i < back->n_samples; i++) {
		struct sample *written = &windows->written[back->ids[i]];
		written->count -= back->samples[i].count;
		written->wall_ns -= back->samples[i].wall_ns;
		written->cpu_ns -= back->samples[i].cpu_ns;
	}
	for (size_t i = 0; i < back->n_figures && i < windows->n_figures; i++)
		if (back->figures[i].from.at_ns < windows->figures[i].at_ns)
			windows->figures[i] = back->figures[i].from;
	if (back->start_ns < windows->start_ns)
		windows->start_ns = back->start_ns;
}

static void take_all_back(struct windows *windows)
{
	struct window_back *back;

	while ((back = window_files_take_back(&windows->files))) {
		take_back(windows, back);
		window_back_destroy(back);
	}
}

// Says what the window is of, and more: "window 3: from ... to ...".
static char *describe(const struct profile *view, const char *what, const char *more)
{
	char from[TIME_POINT_TEXT_SIZE], to[TIME_POINT_TEXT_SIZE];

	time_point_format(view->start_time_ns, false, from);
	time_point_format(view->start_time_ns + view->duration_ns, false, to);
	return memory_printf("%s from %s to %s%s", what, from, to, more);
}

// Begins to write the window, which takes over `back`. A zeroed timeline: the format shows no time.
static void write_window(struct windows *windows, struct profile *view, struct timeline *timeline,
                         struct window_back *back, int64_t time_ns, const char *comment)
{
	const bool shows_time = windows->options.writer->shows_time;

	window_files_write(&windows->files,
	                   &(struct window_part){
	                       .view = view,
	                       .whole = windows->profile,
	                       .timeline = shows_time ? timeline : NULL,
	                       .back = back,
	                   },
	                   time_ns, comment);
	timeline_deinit(timeline);
}

// The span's part that no earlier window has: one that stopped late may reach back before this one.
static void add_rest(struct windows *windows, const struct span *span, struct timeline *ret)
{
	ret->from_ns =
	    span->thread < windows->n_shown ? windows->shown_ns[span->thread] : INT64_MIN;
	timeline_add(ret, span);
}

// What the spans have of the window; those that have ended are not needed any more.
static void cut_timeline(struct windows *windows, struct timeline *ret)
{
	const struct profile *profile = windows->profile;
	struct timeline *spans = &windows->spans;

	timeline_init(ret, INT64_MIN, INT64_MAX);
	for (size_t i = 0; i < spans->n_spans; i++)
		add_rest(windows, &spans->spans[i], ret);
	for (size_t i = 0; i < profile->n_threads; i++) {
		const struct span span = profile_open_span(profile, i);
		add_rest(windows, &span, ret);
	}
	spans->n_spans = 0;
	windows->shown_ns = memory_grow(windows->shown_ns, &windows->shown_capacity,
	                                profile->n_threads, sizeof(*windows->shown_ns));
	for (size_t i = 0; i < profile->n_threads; i++)
		windows->shown_ns[i] = profile->threads[i].last_ns;
	windows->n_shown = profile->n_threads;
}

static struct window_back *take_window(struct windows *windows)
{
	struct window_back *back = memory_alloc_zeroed(1, sizeof(*back));

	take_all_back(windows);
	back->start_ns = windows->start_ns;
	take_samples(windows, back);
	take_figures(windows, back);
	return back;
}

static void write_part(struct windows *windows, struct profile *view, struct window_back *back)
{
	const bool shows_time = windows->options.writer->shows_time;
	_cleanup_free_ char *what = memory_printf("window %u:", windows->files.n_begun);
	_cleanup_free_ char *comment = describe(view, what, "");
	struct timeline timeline = {0};

	if (shows_time)
		cut_timeline(windows, &timeline);
	write_window(windows, view, &timeline, shows_time ? NULL : back, view->start_time_ns,
	             comment);
	if (shows_time)
		window_back_destroy(back);
}

static void cut(struct windows *windows, int64_t now_ns)
{
	struct window_back *back = take_window(windows);
	struct profile view = *windows->profile;

	view.samples = back->samples;
	view.n_samples = back->n_samples;
	view.figures = back->figures;
	view.n_figures = back->n_figures;
	view.start_time_ns += back->start_ns - view.start_ns;
	view.duration_ns = now_ns - back->start_ns;
	windows->start_ns = now_ns;
	if (view.n_samples > 0)
		write_part(windows, &view, back);
	else
		window_back_destroy(back);
}

static void keep_back(const struct window_back *back, bool *kept)
{
	for (size_t i = 0; back && i < back->n_samples; i++)
		kept[back->ids[i]] = true;
}

// Samples of which the window at hand has a part, or may get one back.
static void keep_new(const struct windows *windows, bool *kept)
{
	const struct profile *profile = windows->profile;

	for (size_t i = 0; i < profile->n_samples; i++)
		kept[i] = profile->samples[i].count != windows->written[i].count;
	for (size_t i = 0; i < windows->spans.n_spans; i++)
		kept[windows->spans.spans[i].sample] = true;
	for (size_t i = 0; i < windows->files.count; i++)
		keep_back(windows->files.items[i].back, kept);
	for (size_t i = 0; i < windows->files.n_backs; i++)
		keep_back(windows->files.backs[i], kept);
}

void windows_collect(struct windows *windows)
{
	struct profile *profile = windows->profile;

	if (windows->options.ring_ns) {
		ring_collect(&windows->ring);
		return;
	}
	if (!profile_collect_is_due(profile))
		return;
	_cleanup_free_ bool *kept = memory_alloc_zeroed(profile->n_samples, sizeof(*kept));
	fit_written(windows);
	keep_new(windows, kept);
	profile_collect(profile, kept, 0);
	for (size_t i = 0; i < windows->n_written; i++)
		if (profile->samples[i].count == 0)
			windows->written[i] = (struct sample){0};
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

static void write_ring_view(struct windows *windows, struct profile *view,
                            const struct slice *slice, const struct window_end *end)
{
	_cleanup_free_ char *what = memory_printf("flight recorder: %s;", end->why);
	_cleanup_free_ char *late = describe_late(end->n_late);
	_cleanup_free_ char *comment = describe(view, what, late);
	struct timeline timeline = {0};

	if (!windows->options.quiet)
		fprintf(stderr, "profiler: %s: the last %.3f s are written%s\n", end->why,
		        clock_seconds(view->duration_ns), late);
	if (windows->options.writer->shows_time)
		ring_timeline(&windows->ring, slice, &timeline);
	write_window(windows, view, &timeline, NULL, view->start_time_ns + view->duration_ns,
	             comment);
}

static void write_ring(struct windows *windows, const struct window_end *end)
{
	struct slice slice;
	struct profile view = ring_view(&windows->ring, end->at_ns, &slice);

	if (view.n_samples == 0 || view.duration_ns < view.period_ns / 2)
		fprintf(stderr,
		        "profiler: %s, but the ring has fewer than two samples of a thread yet: "
		        "nothing is written\n",
		        end->why);
	else
		write_ring_view(windows, &view, &slice, end);
	slice_deinit(&slice);
}

void windows_end_window(struct windows *windows, const struct window_end *end)
{
	recording_follow_clock(windows->recording);
	window_files_poll(&windows->files, false);
	if (windows->options.ring_ns) {
		write_ring(windows, end);
	} else if (!window_files_is_behind(&windows->files)) { // else it is one with the next
		cut(windows, end->at_ns);
		write_metrics(windows, false);
	}
}

void windows_poll(struct windows *windows)
{
	window_files_poll(&windows->files, false);
	pusher_poll(&windows->pusher);
	if (windows->options.ring_ns) // one that is asked for may end as long ago
		ring_trim(&windows->ring,
		          recording_now_ns(windows->recording) - WINDOW_ENDS_MAX_WAIT_NS);
}

struct error *windows_end(struct windows *windows)
{
	const struct options *options = &windows->options;

	if (!options->ring_ns) {
		window_files_poll(&windows->files, true);
		cut(windows, windows->profile->duration_ns);
	} else if (!options->quiet && windows->files.n_begun == 0) {
		fprintf(stderr, "profiler: no window was asked for: nothing is written\n");
	}
	struct error *error = window_files_end(&windows->files);
	pusher_end(&windows->pusher);
	write_metrics(windows, true);
	return error ? error : take_pointer(windows->metrics_error);
}

void windows_deinit(struct windows *windows)
{
	ring_deinit(&windows->ring);
	free(windows->written);
	timeline_deinit(&windows->spans);
	free(windows->shown_ns);
	free(windows->figures);
	window_files_deinit(&windows->files);
	pusher_deinit(&windows->pusher);
	free(windows->spool);
	error_destroy(windows->metrics_error);
}
