// SPDX-License-Identifier: MIT
#include "run_table.h"

#include <stdlib.h>
#include <sys/ioctl.h>

#include "cpu_waits.h"
#include "memory.h"
#include "options.h"
#include "profile.h"
#include "selection.h"
#include "timeline.h"
#include "top_model.h"
#include "top_layout.h"
#include "top_own.h"
#include "top_table.h"
#include "waits_table.h"
#include "weights.h"
#include "write_report.h"

enum { MAX_FUNCTIONS = 12, MAX_WAITS = 6 };

// The first rows of a view, but for those that are 0.
static void write_view(const struct top_model *model, enum top_view view, size_t max_rows,
                       int width, const char *title, FILE *stream)
{
	struct top_table table;
	size_t n_rows = 0;

	top_table_init(&table, model,
	               &(struct top_table_options){
	                   .view = view, .sort_by = -1, .hides_idle = true, .width = width});
	while (n_rows < table.n_rows && n_rows < max_rows &&
	       table.rows[n_rows].keys[table.sorted_by] > 0)
		n_rows++;
	if (n_rows > 0) {
		fprintf(stream, "\n%s\n", title);
		for (size_t i = 0; i <= n_rows; i++) {
			_cleanup_free_ char *line =
			    top_table_line(&table, i ? &table.rows[i - 1] : NULL);
			fprintf(stream, "%s\n", line);
		}
	}
	if (n_rows > 0 && table.note && view == TOP_FUNCTIONS)
		fprintf(stream, "%s\n", table.note);
	top_table_deinit(&table);
}

int run_table_width(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static void write_views(const struct options *options, const struct report_source *source,
                        int width, FILE *stream)
{
	static const struct cpu_log no_log; // the summary says how long it waited for CPUs
	const struct selection selection = options_selection(options);
	struct timeline *timeline = source->timeline;
	struct profile profile = *source->whole;
	struct top_own own = {0};
	struct top_model model;
	size_t n_threads;

	profile.figures = source->part->figures;
	profile.n_figures = source->part->n_figures;
	_cleanup_free_ struct weights *weights =
	    weights_of_spans(&profile, timeline->spans, timeline->n_spans);
	_cleanup_free_ bool *selected = selection_apply(&selection, &profile, source->modules,
	                                                source->symbols, options->syscalls);

	top_own_update(&own, &profile, source->modules, source->symbols);
	free(timeline_by_thread(timeline, &n_threads)); // sorts it
	top_model_init(&model, &(struct top_input){
	                           .profile = &profile,
	                           .modules = source->modules,
	                           .symbols = source->symbols,
	                           .own = &own,
	                           .spans = timeline->spans,
	                           .n_spans = timeline->n_spans,
	                           .weights = weights,
	                           .selected = selected,
	                           .cpu_log = &no_log,
	                           .choice = {.hides_idle = true},
	                           .from_ns = profile.start_ns,
	                           .to_ns = profile.start_ns + profile.duration_ns + 1,
	                       });
	write_view(&model, TOP_FUNCTIONS, MAX_FUNCTIONS, width,
	           "Functions, by their own time:", stream);
	write_view(&model, TOP_WAITS, MAX_WAITS, width, "Waits:", stream);
	fputc('\n', stream);
	top_model_deinit(&model);
	top_own_deinit(&own);
}

void run_table_write(const struct options *options, const struct report_source *source, int width,
                     FILE *stream)
{
	if (options->waits_ns)
		waits_table_write(options, source, width, stream);
	else
		write_views(options, source, width, stream);
}
