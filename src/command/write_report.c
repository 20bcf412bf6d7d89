// SPDX-License-Identifier: MIT
#include "write_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "language_text.h"
#include "memory.h"
#include "options.h"
#include "profile.h"
#include "selection.h"
#include "summary.h"
#include "timeline.h"
#include "weights.h"
#include "write_explain.h"
#include "write_html.h"
#include "writer.h"

enum { MAX_TASKS = 500 }; // in a timeline, each by itself

static void group_tasks(const struct options *options, struct timeline *timeline,
                        const struct profile *profile)
{
	size_t n_tasks, n_groups;

	timeline_group(timeline, profile, MAX_TASKS, &n_tasks, &n_groups);
	if (n_groups > 0 && !options->quiet)
		fprintf(stderr,
		        "profiler: %zu %s are shown as %zu, one for each place that "
		        "creates them (--thread=REGEX shows some by themselves)\n",
		        n_tasks, language_tasks(n_tasks), n_groups);
}

// A report, and what it borrows.
struct made_report {
	struct report report;
	struct profile whole;
	struct weighed weighed;
	struct weights *weights;
	bool *selected;
};

// Leaves out the time that no tick has seen, where samples like that would be.
static void select_unseen(const struct selection *selection, struct weights *weights, size_t n)
{
	static const enum thread_state states[N_WEIGHT_CLASSES] = {THREAD_RUNNING, THREAD_RUNNABLE,
	                                                           THREAD_SLEEPING};
	const bool none =
	    selection->regexes[SELECTION_FOCUS] || selection->regexes[SELECTION_SYSCALL];

	for (int class = 0; class < N_WEIGHT_CLASSES; class ++)
		for (size_t i = 0; i < n; i++)
			if (none || !(selection->states >> states[class] & 1))
				weights[i].unseen_ns[class] = 0;
}

// The profile that is written: weighed; or, over time, with what the kernel counted in that time.
static const struct profile *choose_profile(const struct report_source *source,
                                            struct made_report *made)
{
	if (!source->timeline) {
		weighed_init(&made->weighed, source->part);
		return &made->weighed.profile;
	}
	made->whole = *source->whole;
	made->whole.figures = source->part->figures;
	made->whole.n_figures = source->part->n_figures;
	made->weights =
	    weights_of_spans(&made->whole, source->timeline->spans, source->timeline->n_spans);
	return &made->whole;
}

// Makes the report in *made, which is not to be moved.
static void make_report(const struct options *options, const struct report_source *source,
                        struct made_report *made)
{
	const struct selection selection = options_selection(options);

	*made = (struct made_report){0};
	const struct profile *profile = choose_profile(source, made);
	made->selected = selection_apply(&selection, profile, source->modules, source->symbols,
	                                 options->syscalls);
	if (source->timeline && made->selected)
		timeline_select(source->timeline, made->selected);
	if (source->timeline)
		select_unseen(&selection, made->weights, profile->n_threads);
	if (source->timeline)
		group_tasks(options, source->timeline, profile);
	made->report = (struct report){
	    .timeline = source->timeline,
	    .weights = made->weights,
	    .profile = profile,
	    .modules = source->modules,
	    .symbols = source->symbols,
	    .selected = made->selected,
	    .title = options->title,
	    .comments = source->comments,
	    .cpu_wait = source->cpu_wait,
	    .cpu_by_others = source->cpu_by_others,
	    .input = options->recording,
	    .pid = source->pid,
	    .process_roots = source->children,
	    .thread_roots = options->threads,
	    .label_frames = options->label_frames,
	    .task_ids = options->task_ids || options->waits_ns,
	    .lines = options->lines,
	    .syscalls = options->syscalls,
	};
}

static void free_report(struct made_report *made)
{
	free(made->selected);
	free(made->weights);
	weighed_deinit(&made->weighed);
}

// explain_lines_deinit must follow.
static void explain(const struct options *options, const struct report_source *source,
                    struct explain_lines *ret)
{
	struct report_source sums = *source;
	struct made_report made;

	sums.timeline = NULL;
	make_report(options, &sums, &made);
	explain_lines_init(ret, &made.report);
	free_report(&made);
}

const char **report_comments(const char *first, const char *const *more)
{
	size_t n = 0;

	while (more && more[n])
		n++;
	const char **joined = memory_alloc_zeroed(n + 2, sizeof(*joined));
	joined[0] = first;
	for (size_t i = 0; i < n; i++)
		joined[i + 1] = more[i];
	return joined;
}

struct error *write_report(const struct options *options, const struct report_source *source,
                           FILE *stream)
{
	struct explain_lines lines = {0};
	struct made_report made;

	if (options->writer == &writer_html && !options->waits_ns)
		explain(options, source, &lines);
	make_report(options, source, &made);
	made.report.findings = &lines;
	struct error *error = options->writer->write(&made.report, stream);
	if (!error && !options->quiet)
		summary_print_selection(made.report.profile, made.selected);
	free_report(&made);
	explain_lines_deinit(&lines);
	return error;
}

void write_report_findings(const struct options *options, const struct report_source *source)
{
	struct explain_lines lines;

	if (!isatty(STDERR_FILENO) || options->waits_ns)
		return;
	explain(options, source, &lines);
	if (lines.n == 0 && !lines.cpu_is_first)
		fprintf(stderr, "profiler: %s\n", lines.none);
	// Beside the tables one is enough.
	for (size_t i = 0; i < lines.n && !(i > 0 && options->answers); i++)
		fprintf(stderr, "profiler: %s: %s\n",
		        i > 0                      ? "then"
		        : !lines.items[0].is_fault ? "most time goes here"
		        : lines.cpu_is_first       ? "then look at"
		                                   : "look first at",
		        lines.items[i].text);
	explain_lines_deinit(&lines);
}

struct error *write_report_diff(const struct options *options, const struct report_source *a,
                                const struct report_source *b, FILE *stream)
{
	struct made_report a_made, b_made;

	make_report(options, a, &a_made);
	make_report(options, b, &b_made);
	struct error *error = write_html_diff(&a_made.report, &b_made.report, stream);
	free_report(&a_made);
	free_report(&b_made);
	return error;
}
