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

enum {
	MIN_COLLECT = 4096,
	MAX_JOINED = 8, // windows that become one, while earlier ones are still being written
};

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

// The samples that have grown since the last window, by what. The caller frees them.
static struct sample *new_samples(struct windows *windows, size_t *ret_count)
{
	const struct profile *profile = windows->profile;
	struct sample *samples = memory_alloc_zeroed(profile->n_samples, sizeof(*samples));
	size_t n = 0;

	fit_written(windows);
	for (size_t i = 0; i < profile->n_samples; i++) {
		struct sample *written = &windows->written[i];
		const struct sample *sum = &profile->samples[i];
		if (sum->count == written->count)
			continue;
		samples[n] = *sum;
		samples[n].count -= written->count;
		samples[n].wall_ns -= written->wall_ns;
		samples[n].cpu_ns -= written->cpu_ns;
		*written = *sum;
		n++;
	}
	*ret_count = n;
	return samples;
}

// What the kernel has counted since the last window, by thread. The caller frees it.
static struct figures_range *new_figures(struct windows *windows)
{
	const struct profile *profile = windows->profile;
	const size_t n = profile->n_threads;
	struct figures_range *figures = memory_alloc_zeroed(n + 1, sizeof(*figures));

	windows->figures =
	    memory_grow(windows->figures, &windows->figures_capacity, n + 1, sizeof(*figures));
	for (size_t i = 0; i < n; i++) {
		profile_figures(profile, i, &figures[i].from, &figures[i].to);
		if (i < windows->n_figures && windows->figures[i].at_ns > figures[i].from.at_ns)
			figures[i].from = windows->figures[i];
		windows->figures[i] = figures[i].to;
	}
	windows->n_figures = n;
	return figures;
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

static void cut(struct windows *windows, int64_t now_ns)
{
	struct profile view = *windows->profile;
	_cleanup_free_ struct sample *samples = new_samples(windows, &view.n_samples);
	_cleanup_free_ struct figures_range *figures = new_figures(windows);
	view.samples = samples;
	view.figures = figures;
	view.n_figures = view.n_threads;
	view.start_time_ns += windows->start_ns - view.start_ns;
	view.duration_ns = now_ns - windows->start_ns;
	windows->start_ns = now_ns;
	if (view.n_samples == 0)
		return;
	_cleanup_free_ char *comment = describe(windows, &view);
	struct timeline timeline = {0};
	if (windows->shows_time)
		cut_timeline(windows, &timeline);
	window_files_write(windows->files,
	                   &(struct window_part){
	                       .view = &view,
	                       .whole = windows->profile,
	                       .timeline = windows->shows_time ? &timeline : NULL,
	                   },
	                   view.start_time_ns, comment);
	timeline_deinit(&timeline);
}

bool windows_cut(struct windows *windows, int64_t now_ns)
{
	const int64_t long_ns = MAX_JOINED * windows->options->every_ns;

	// Fewer files need less CPU: with --push one that is too many would be given up.
	if (now_ns - windows->start_ns < long_ns && window_files_is_behind(windows->files))
		return false;
	cut(windows, now_ns);
	return true;
}

// Samples of which the window at hand has a part.
static void keep_new(const struct windows *windows, bool *kept)
{
	const struct profile *profile = windows->profile;

	for (size_t i = 0; i < profile->n_samples; i++)
		kept[i] = profile->samples[i].count != windows->written[i].count;
	for (size_t i = 0; i < windows->spans.n_spans; i++)
		kept[windows->spans.spans[i].sample] = true;
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
	cut(windows, now_ns);
}
