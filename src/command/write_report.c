// SPDX-License-Identifier: MIT
#include "write_report.h"

#include "memory.h"
#include "options.h"
#include "profile.h"
#include "selection.h"
#include "summary.h"
#include "timeline.h"
#include "write_html.h"
#include "writer.h"

enum { MAX_GOROUTINES = 500 }; // in a timeline, each by itself

static void group_goroutines(const struct options *options, struct timeline *timeline,
                             const struct profile *profile)
{
	size_t n_goroutines, n_groups;

	timeline_group(timeline, profile, MAX_GOROUTINES, &n_goroutines, &n_groups);
	if (n_groups > 0 && !options->quiet)
		fprintf(
		    stderr,
		    "profiler: %zu goroutines are shown as %zu, by what has created them: of each "
		    "one that runs, or else one that waits (--thread=REGEX shows some by "
		    "themselves)\n",
		    n_goroutines, n_groups);
}

// *ret_selected is the report's, and the caller's to free.
static struct report make_report(const struct options *options, const struct report_source *source,
                                 bool **ret_selected)
{
	const struct selection selection = options_selection(options);
	const struct profile *profile = source->timeline ? source->whole : source->part;
	bool *selected = selection_apply(&selection, profile, source->modules, source->symbols,
	                                 options->syscalls);

	if (source->timeline && selected)
		timeline_select(source->timeline, selected);
	if (source->timeline)
		group_goroutines(options, source->timeline, profile);
	*ret_selected = selected;
	return (struct report){
	    .timeline = source->timeline,
	    .profile = profile,
	    .modules = source->modules,
	    .symbols = source->symbols,
	    .selected = selected,
	    .title = options->title,
	    .comments = source->comments,
	    .cpu_wait = source->cpu_wait,
	    .pid = source->pid,
	    .process_roots = source->children,
	    .thread_roots = options->threads,
	    .label_frames = options->label_frames,
	    .goroutine_ids = options->goroutine_ids || options->waits_ns,
	    .lines = options->lines,
	    .syscalls = options->syscalls,
	};
}

struct error *write_report(const struct options *options, const struct report_source *source,
                           FILE *stream)
{
	_cleanup_free_ bool *selected = NULL;
	const struct report report = make_report(options, source, &selected);
	struct error *error = options->writer->write(&report, stream);

	if (!error && !options->quiet)
		summary_print_selection(report.profile, selected);
	return error;
}

struct error *write_report_diff(const struct options *options, const struct report_source *a,
                                const struct report_source *b, FILE *stream)
{
	_cleanup_free_ bool *a_selected = NULL, *b_selected = NULL;
	const struct report a_report = make_report(options, a, &a_selected);
	const struct report b_report = make_report(options, b, &b_selected);

	return write_html_diff(&a_report, &b_report, stream);
}
