#include "top_command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "clock.h"
#include "debug_sources.h"
#include "error.h"
#include "memory.h"
#include "options.h"
#include "text.h"
#include "time_point.h"
#include "top_json.h"
#include "top_source.h"
#include "top_text.h"

enum { NAME_COLUMNS = 15 };

// Everything of one run.
struct top_run {
	const struct options *options; // borrowed
	struct debug_sources sources;
	struct top_source source;
	int width;       // of plain tables; 0: as wide as they are
	int64_t from_ns; // of the next interval
	long n_told;     // intervals
};

// Which samples are looked at: those that are known by now.
static void select_samples(struct top_run *run)
{
	const struct selection selection = options_selection(run->options);
	const struct recording *recording = &run->source.recording;

	top_source_select(&run->source,
	                  selection_apply(&selection, &recording->profile, &recording->modules,
	                                  top_source_symbols(&run->source),
	                                  run->options->syscalls));
}

static void print_table(const struct top_run *run, const struct top_model *model)
{
	const struct top_options *options = &run->options->top;
	struct top_table table;

	top_table_init(
	    &table, model,
	    &(struct top_table_options){
	        .view = options->view,
	        .sort_by = options->sort ? top_view_column(options->view, options->sort) : -1,
	        .hides_idle = true,
	        .open_depth = INT32_MAX,
	    });
	for (size_t i = 0; i <= table.n_rows; i++) {
		_cleanup_free_ char *line =
		    top_table_line(&table, i ? &table.rows[i - 1] : NULL, run->width);
		puts(line);
	}
	if (table.note)
		puts(table.note);
	puts("");
	top_table_deinit(&table);
}

static void print_head(const struct top_run *run, const struct top_model *model)
{
	const struct profile *profile = &run->source.recording.profile;
	const char *process = profile_process_name(profile, run->source.recording.pid);
	_cleanup_free_ char *clean = text_clean(process, strlen(process), TEXT_UNLIMITED);
	_cleanup_free_ char *name = top_text_fit(clean, NAME_COLUMNS, false);
	char time[TIME_POINT_TEXT_SIZE];

	time_point_format(profile->start_time_ns + model->input.from_ns, false, time);
	printf("%s   %.1f s   pid %d %s   %zu threads, %llu ticks\n", time,
	       (double)(model->input.to_ns - model->input.from_ns) / (double)NS_PER_SECOND,
	       run->source.recording.pid, name, model->n_threads,
	       (unsigned long long)model->share.count);
}

// One interval. False: nobody reads it any more.
static bool tell(struct top_run *run, int64_t to_ns)
{
	const struct top_options *options = &run->options->top;
	struct top_model model;

	top_source_look(&run->source, run->from_ns, to_ns,
	                !options->json && options->view == TOP_TREE, &model);
	if (options->json) {
		top_json_write(&model, &run->source.recording, stdout);
	} else {
		print_head(run, &model);
		print_table(run, &model);
	}
	top_model_deinit(&model);
	run->from_ns = to_ns;
	run->n_told++;
	return fflush(stdout) == 0 && !ferror(stdout);
}

static bool has_told_all(const struct top_run *run)
{
	return run->options->top.count && run->n_told >= run->options->top.count;
}

static struct error *no_reader(void)
{
	return error_create(EXIT_STATUS_OUTPUT, "stdout cannot be written: %s", strerror(errno));
}

// The last interval holds what lies at the very end.
static struct error *tell_recording(struct top_run *run)
{
	const int64_t interval_ns = run->options->top.interval_ns;

	select_samples(run);
	while (run->from_ns <= run->source.now_ns && !has_told_all(run)) {
		const int64_t to_ns = run->from_ns + interval_ns;
		if (!tell(run, to_ns))
			return no_reader();
	}
	return NULL;
}

static int terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return 0;
}

struct error *top_command(const struct options *options)
{
	struct top_run run = {.options = options, .width = terminal_width()};
	struct error *error =
	    debug_sources_init(&run.sources, options->debug_directories, options->debuginfod,
	                       !options->quiet && isatty(STDERR_FILENO));

	unsetenv("DEBUGINFOD_URLS"); // else libdw may ask
	if (!error)
		error = top_source_open(options->recording, &run.sources, options->inlines,
		                        &run.source);
	if (!error)
		error = tell_recording(&run);
	top_source_deinit(&run.source);
	debug_sources_deinit(&run.sources);
	return error;
}
