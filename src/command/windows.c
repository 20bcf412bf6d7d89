// SPDX-License-Identifier: MIT
#include "windows.h"

#include <stdlib.h>

#include "memory.h"
#include "options.h"
#include "profile.h"
#include "profile_collect.h"
#include "time_point.h"
#include "window_files.h"
#include "writer.h"

enum { MIN_COLLECT = 4096 };

void windows_begin(struct windows *windows, const struct options *options, struct profile *profile,
                   struct window_files *files)
{
	*windows = (struct windows){
	    .options = options,
	    .profile = profile,
	    .files = files,
	    .start_ns = profile->start_ns,
	    .collect_at = MIN_COLLECT,
	    .shows_time = options->writer->shows_time,
	};
	timeline_init(&windows->spans, INT64_MIN, INT64_MAX);
	if (windows->shows_time)
		profile_follow(profile, &windows->spans.follower);
}

void windows_deinit(struct windows *windows)
{
	free(windows->written);
	timeline_deinit(&windows->spans);
	free(windows->shown_ns);
	free(windows->figures);
	*windows = (struct windows){0};
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

	while ((back = window_files_take_back(windows->files))) {
		take_back(windows, back);
		window_back_destroy(back);
	}
}

static char *describe(const struct windows *windows, const struct profile *view)
{
	char from[TIME_POINT_TEXT_SIZE], to[TIME_POINT_TEXT_SIZE];

	time_point_format(view->start_time_ns, false, from);
	time_point_format(view->start_time_ns + view->duration_ns, false, to);
	return memory_printf("window %u: from %s to %s", windows->files->n_begun, from, to);
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

static void write_window(struct windows *windows, struct profile *view, struct window_back *back)
{
	_cleanup_free_ char *comment = describe(windows, view);
	struct timeline timeline = {0};

	if (windows->shows_time)
		cut_timeline(windows, &timeline);
	window_files_write(windows->files,
	                   &(struct window_part){
	                       .view = view,
	                       .whole = windows->profile,
	                       .timeline = windows->shows_time ? &timeline : NULL,
	                       .back = windows->shows_time ? NULL : back,
	                   },
	                   view->start_time_ns, comment);
	if (windows->shows_time)
		window_back_destroy(back);
	timeline_deinit(&timeline);
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
		write_window(windows, &view, back);
	else
		window_back_destroy(back);
}

bool windows_cut(struct windows *windows, int64_t now_ns)
{
	if (window_files_is_behind(windows->files))
		return false;
	cut(windows, now_ns);
	return true;
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
	for (size_t i = 0; i < windows->files->count; i++)
		keep_back(windows->files->items[i].back, kept);
	for (size_t i = 0; i < windows->files->n_backs; i++)
		keep_back(windows->files->backs[i], kept);
}

void windows_collect(struct windows *windows)
{
	struct profile *profile = windows->profile;

	if (profile->n_samples - profile->n_free_samples < windows->collect_at)
		return;
	_cleanup_free_ bool *kept = memory_alloc_zeroed(profile->n_samples, sizeof(*kept));
	fit_written(windows);
	keep_new(windows, kept);
	profile_collect(profile, kept, 0);
	for (size_t i = 0; i < windows->n_written; i++)
		if (profile->samples[i].count == 0)
			windows->written[i] = (struct sample){0};
	windows->collect_at = 2 * (profile->n_samples - profile->n_free_samples);
	if (windows->collect_at < MIN_COLLECT)
		windows->collect_at = MIN_COLLECT;
}

void windows_end(struct windows *windows, int64_t now_ns)
{
	window_files_poll(windows->files, true);
	cut(windows, now_ns);
}
