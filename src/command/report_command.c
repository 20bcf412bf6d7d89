// SPDX-License-Identifier: MIT
#include "report_command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "debug_server.h"
#include "error.h"
#include "input_limit.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "recording.h"
#include "run_table.h"
#include "summary.h"
#include "text.h"
#include "view.h"
#include "write_report.h"
#include "writer.h"

static uint64_t count_samples(const struct profile *profile)
{
	uint64_t n = 0;

	for (size_t i = 0; i < profile->n_samples; i++)
		n += profile->samples[i].count;
	return n;
}

static void print_recording(const struct recording *recording)
{
	const struct profile *whole = &recording->profile;
	const uint64_t n_samples = count_samples(whole);

	fprintf(stderr,
	        "profiler: recording of %.3f s: %" PRIu64 " tick%s, %" PRIu64 " missed; %" PRIu64
	        " sample%s of %zu thread%s; %zu distinct stack%s\n",
	        clock_seconds(whole->duration_ns), recording->ticks, text_plural(recording->ticks),
	        recording->missed_ticks, n_samples, text_plural(n_samples), whole->n_threads,
	        text_plural(whole->n_threads), whole->n_stacks, text_plural(whole->n_stacks));
	summary_print_damage(recording);
}

static void print_slice(const struct profile *slice)
{
	fprintf(stderr, "profiler: slice of %.3f s: %" PRIu64 " samples\n",
	        clock_seconds(slice->duration_ns), count_samples(slice));
}

static struct error *write_view(const struct options *options, struct recording *recording,
                                struct view *view, struct output *output)
{
	const struct symbolize_options names = {.inlines = options->inlines};

	if (!recording->has_symbols)
		input_limit_end(); // of view
	recording_find_names(recording, NULL, &names);
	const struct report_source *source = view_source(view, recording);
	struct error *error = NULL;
	if (options->answers)
		run_table_write(options, source, run_table_width(STDOUT_FILENO),
		                output_stream(output));
	else
		error = write_report(options, source, output_stream(output));
	if (!error)
		error = output_finish(output, NULL);
	if (!options->quiet) {
		summary_print_doubts(source->whole);
		summary_print_cpu_wait(source->cpu_wait);
	}
	if (!options->quiet || options->tells_lacks)
		summary_print_names(source->part, source->modules, error ? NULL : source->symbols);
	return error;
}

static struct error *report(const struct options *options, struct recording *recording,
                            struct output *output)
{
	struct view view;
	struct error *error = view_begin(&view, options, &recording->profile);

	if (!error) {
		recording_replay(recording);
		if ((!options->quiet || options->tells_lacks) &&
		    options->has_regex[SELECTION_THREAD])
			summary_print_unmatched(&recording->profile,
			                        &options->regexes[SELECTION_THREAD]);
		if (!options->quiet)
			print_recording(recording);
		else if (options->tells_damage)
			summary_print_damage(recording);
		error = view_end(&view);
		if (!options->quiet && view_is_sliced(&view))
			print_slice(&view.part);
	}
	if (!error)
		error = write_view(options, recording, &view, output);
	view_deinit(&view);
	return error;
}

static void print_next(const struct options *options)
{
	_cleanup_free_ char *file = text_quote_file(options->recording);

	if (!options->quiet && strcmp(options->recording, "-") != 0)
		fprintf(stderr, "profiler: the page: profiler view %s; folded stacks: -f folded\n",
		        file);
}

struct error *report_recording(const struct options *options, struct recording *recording)
{
	struct debug_sources sources = {0};
	struct output *output = NULL;

	modules_set_debug_sources(&recording->modules, &sources);
	struct error *error = options_debug_sources(options, &sources);
	if (!error)
		error = output_open(options->output ?: "-",
		                    options->writer->binary && !options->answers, &output);
	if (!error)
		error = report(options, recording, output);
	if (!error && options->answers)
		print_next(options);
	else if (!error && !options->quiet)
		summary_print_output(options->writer, output_name(output));
	output_destroy(output);
	recording_deinit(recording);
	debug_sources_deinit(&sources);
	return error;
}

struct error *report_command(const struct options *options)
{
	struct recording recording;
	struct error *error = recording_open(options->recording, &recording);

	return error ? error : report_recording(options, &recording);
}
