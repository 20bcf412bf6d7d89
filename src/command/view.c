// SPDX-License-Identifier: MIT
#include "view.h"

#include <stdlib.h>

#include "blame.h"
#include "clock.h"
#include "cpu_waits.h"
#include "error.h"
#include "time_point.h"
#include "options.h"
#include "recording.h"
#include "summary.h"
#include "writer.h"

bool view_is_sliced(const struct view *view)
{
	return view->options->from.kind != TIME_POINT_NONE ||
	       view->options->to.kind != TIME_POINT_NONE;
}

static struct error *set_slice(struct view *view)
{
	const struct options *options = view->options;
	const struct profile *whole = view->whole;
	const int64_t from_ns = time_point_offset_ns(&options->from, whole->start_time_ns);
	const int64_t to_ns = time_point_offset_ns(&options->to, whole->start_time_ns);
	const bool has_from = options->from.kind != TIME_POINT_NONE;
	const bool has_to = options->to.kind != TIME_POINT_NONE;

	if (has_to && to_ns <= (has_from && from_ns > 0 ? from_ns : 0))
		return error_create(EXIT_STATUS_USAGE,
		                    "--to is %.3f s after the start, but the slice begins at %.3f "
		                    "s: give a later time",
		                    clock_seconds(to_ns), has_from ? clock_seconds(from_ns) : 0);
	if (has_from)
		view->slice.from_ns = whole->start_ns + from_ns;
	if (has_to)
		view->slice.to_ns = whole->start_ns + to_ns;
	return NULL;
}

static bool keeps_spans(const struct options *options)
{
	return options->writer->write && (options->writer->shows_time || options->blame);
}

struct error *view_begin(struct view *view, const struct options *options, struct profile *whole)
{
	*view = (struct view){.options = options, .whole = whole};
	slice_init(&view->slice, INT64_MIN, INT64_MAX);
	if (view_is_sliced(view)) {
		struct error *error = set_slice(view);
		if (error)
			return error;
		profile_follow(whole, &view->slice.follower);
	}
	if (options->waits_ns) {
		long_waits_init(&view->waits, options->waits_ns);
		profile_follow(whole, &view->waits.follower);
	}
	if (keeps_spans(options)) {
		timeline_init(&view->timeline, view->slice.from_ns, view->slice.to_ns);
		profile_follow(whole, &view->timeline.follower);
	}
	return NULL;
}

static struct error *check_slice(const struct view *view)
{
	const struct profile *part = &view->part, *whole = view->whole;
	char start[TIME_POINT_TEXT_SIZE];

	if (part->n_samples > 0 && part->duration_ns >= part->period_ns)
		return NULL;
	time_point_format(whole->start_time_ns, false, start);
	return error_create(EXIT_STATUS_USAGE,
	                    "fewer than two samples of a thread lie between --from and --to: "
	                    "sampling began at %s and lasted %.3f s",
	                    start, clock_seconds(whole->duration_ns));
}

static struct profile view_waits(struct view *view)
{
	const struct options *options = view->options;
	size_t n_threads, n_left_out;
	const struct profile part =
	    long_waits_view(&view->waits, view->whole, options->max_threads ?: OPTIONS_MAX_THREADS,
	                    &n_threads, &n_left_out);

	if (!options->quiet)
		summary_print_waits(&part, options->waits_ns, n_threads, n_left_out);
	return part;
}

struct error *view_end(struct view *view)
{
	view->part = *view->whole;
	if (view->options->waits_ns) // never of a slice (options.c)
		view->part = view_waits(view);
	if (!view_is_sliced(view))
		return NULL;
	view->part = slice_view(&view->slice, view->whole);
	return check_slice(view);
}

static void follow_waits(struct view *view, struct recording *recording)
{
	const struct profile *whole = view->whole;
	struct profile *part = &view->part;
	struct blame blame;

	if (!view->options->blame || !keeps_spans(view->options))
		return;
	blame_follow(&view->timeline, view->whole, &recording->modules, &recording->symbols,
	             &blame);
	view->samples = blame_sum(&view->timeline, whole, &part->n_samples);
	part->samples = view->samples;
	part->locations = whole->locations;
	part->n_locations = whole->n_locations;
	part->location_ids = whole->location_ids;
	part->n_location_ids = whole->n_location_ids;
	part->stacks = whole->stacks;
	part->n_stacks = whole->n_stacks;
	if (!view->options->quiet)
		summary_print_blame(&blame, view->options->recording != NULL);
}

// Returns the line about waits for CPUs in the view's part of the time (cpu_waits_text).
static char *describe_cpu_wait(const struct view *view, const struct cpu_log *log,
                               bool *ret_by_others)
{
	const struct slice *slice = &view->slice;
	const int64_t start_ns = view->whole->start_ns;
	const bool has_from = slice->from_ns > start_ns, has_to = slice->to_ns < INT64_MAX;
	const struct cpu_waits figures =
	    cpu_log_between(log, has_from ? slice->from_ns - start_ns : 0,
	                    has_to ? slice->to_ns - start_ns : INT64_MAX);
	const struct profile *part = view->options->waits_ns ? view->whole : &view->part;

	return cpu_waits_text(&figures, cpu_waits_count_threads(part), ret_by_others);
}

const struct report_source *view_source(struct view *view, struct recording *recording)
{
	struct report_source *source = &view->source;

	follow_waits(view, recording);
	view->comments = report_comments(recording->comment, view->options->agent.comments);
	*source = (struct report_source){
	    .part = &view->part,
	    .whole = view->whole,
	    .timeline = view_timeline(view),
	    .modules = &recording->modules,
	    .symbols = &recording->symbols,
	    .comments = view->comments,
	    .pid = recording->pid,
	    .children = recording->children,
	};
	view->cpu_wait = describe_cpu_wait(view, &recording->cpu_log, &source->cpu_by_others);
	source->cpu_wait = view->cpu_wait;
	return source;
}

struct timeline *view_timeline(struct view *view)
{
	return view->options->writer->shows_time ? &view->timeline : NULL;
}

void view_deinit(struct view *view)
{
	slice_deinit(&view->slice);
	long_waits_deinit(&view->waits);
	timeline_deinit(&view->timeline);
	free(view->samples);
	free(view->cpu_wait);
	free(view->comments);
}
