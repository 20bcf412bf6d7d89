// SPDX-License-Identifier: MIT
#include "options_check.h"

#include <stdlib.h>
#include <string.h>

#include "option_table.h"
#include "options.h"
#include "writer.h"

enum { ALL_STATES = (1 << N_THREAD_STATES) - 1 };

struct selection options_selection(const struct options *options)
{
	struct selection selection = {.states = options->states ? options->states : ALL_STATES};

	if (options->on_cpu)
		selection.states &= 1u << THREAD_RUNNING;
	if (options->off_cpu)
		selection.states &= ~(1u << THREAD_RUNNING);
	if (selection.states == 0)
		selection.states = OPTIONS_NO_STATE;
	for (size_t i = 0; i < N_SELECTION_REGEXES; i++)
		selection.regexes[i] = options->has_regex[i] ? &options->regexes[i] : NULL;
	selection.label_filters = options->label_filters;
	selection.n_label_filters = options->n_label_filters;
	return selection;
}

struct error *options_check_directory(const struct options *options)
{
	if (!options->output || strcmp(options->output, "-") != 0)
		return NULL;
	return option_error("-o - is standard output, which takes only one profile: name a "
	                    "directory, in which there is a file for each");
}

static struct error *check_ring(const struct options *options)
{
	const bool windows = options->ring_ns || options->every_ns;

	if (!options->ring_ns &&
	    (options->ring_bytes != OPTIONS_RING_BYTES || options->triggers.count > 0))
		return option_error("--ring-size and --dump-when are for --ring: give that, too");
	if (!windows && (options->keep || options->exec))
		return option_error(
		    "--keep and --exec are for --every and --ring: give one of them");
	if (options->ring_ns && options->every_ns)
		return option_error("--ring and --every are given: leave one of them out");
	if (options->every_ns && (double)options->every_ns * options->frequency_hz < 2e9)
		return option_error(
		    "--every: there would be less than two ticks in a window: give a "
		    "longer time, or a higher --frequency");
	if (windows && options->writer == &writer_record)
		return option_error("--ring and --every make no recordings: give another format");
	if (windows && (options->from.kind || options->to.kind))
		return option_error("--from and --to are not for --ring and --every, whose windows "
		                    "are slices");
	return windows ? options_check_directory(options) : NULL;
}

static struct error *check_recording(const struct options *options)
{
	const bool records = options->writer == &writer_record;

	if (records && options->recording)
		return option_error("--format: a recording is made while sampling: give "
		                    "another format");
	if (records && (options->from.kind || options->to.kind))
		return option_error(
		    "--from and --to are for profiler report, which cuts recordings");
	if (!records && (options->max_size_bytes || !options->symbols))
		return option_error(
		    "--max-size and --no-symbols are for recordings: give -f record");
	return NULL;
}

static struct error *check_diff(const struct options *options)
{
	if (options->other && options->writer->shows_time && options->writer != &writer_html)
		return option_error("diff: differences are sums: give -f folded, pprof or html");
	return NULL;
}

static struct error *check_waits(const struct options *options)
{
	if (!options->waits_ns)
		return options->max_threads
		           ? option_error("--max-threads is for --waits: give that, too")
		           : NULL;
	if (options->ring_ns || options->every_ns || options->from.kind || options->to.kind)
		return option_error(
		    "--waits is of the whole run: leave --ring, --every, --from and "
		    "--to out");
	if (options->writer == &writer_record || options->writer->shows_time)
		return option_error("--waits: give pprof or folded");
	return NULL;
}

static struct error *check_blame(const struct options *options)
{
	if (options->blame && (options->waits_ns || options->ring_ns || options->every_ns))
		return option_error("--blame is of a whole profile: leave --waits, --ring and "
		                    "--every out");
	return NULL;
}

static struct error *check_title(const struct options *options)
{
	return options->title && options->writer != &writer_html
	           ? option_error("--title is for pages: give -f html")
	           : NULL;
}

static struct error *check_outputs(const struct options *options)
{
	struct error *error = push_check_sampling(options);

	if (!error)
		error = check_ring(options);
	if (!error)
		error = check_diff(options);
	if (!error)
		error = check_waits(options);
	if (!error)
		error = check_blame(options);
	if (!error)
		error = check_title(options);
	return error ? error : check_recording(options);
}

struct error *options_check(const struct options *options)
{
	if (options->pid && options->command)
		return option_error("-p %d and a command ('%s') are given: leave one of them out",
		                    options->pid, options->command[0]);
	if (!options->pid && !options->command && !options->recording)
		return option_error("nothing to profile: give a process (-p PID) or a command");
	if (options->on_cpu && options->off_cpu)
		return option_error(
		    "--on-cpu and --off-cpu leave nothing: give one, or none for all");
	if (options_selection(options).states == OPTIONS_NO_STATE)
		return option_error("--state and --%s-cpu leave nothing: leave one of them out",
		                    options->on_cpu ? "on" : "off");
	if (options->from.kind && options->from.kind == options->to.kind &&
	    options->to.ns <= options->from.ns && options->to.kind != TIME_POINT_DAY_TIME)
		return option_error("--to is not after --from: give a later one");
	return check_outputs(options);
}
