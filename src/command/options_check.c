// SPDX-License-Identifier: MIT
#include "options_check.h"

#include <stdlib.h>
#include <string.h>

#include "option_table.h"
#include "options.h"
#include "verb.h"
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
	return option_error("-o - takes only one profile: name a directory for several");
}

static struct error *check_ring(const struct options *options)
{
	const bool windows = options->ring_ns || options->every_ns;

	if (!options->ring_ns &&
	    (options->ring_bytes != OPTIONS_RING_BYTES || options->triggers.count > 0))
		return option_error("--ring-size and --dump-when need --ring");
	if (!windows && (options->keep || options->exec))
		return option_error("--keep and --exec need --every or --ring");
	if (options->ring_ns && options->every_ns)
		return option_error("--ring and --every cannot be combined: choose one");
	if (options->every_ns && (double)options->every_ns * options->frequency_hz < 2e9)
		return option_error("--every: a window would have fewer than two samples of a "
		                    "thread: give a longer time or a higher --frequency");
	if (windows && options->writer == &writer_record)
		return option_error(
		    "--ring and --every cannot write recordings: choose another format");
	if (windows && (options->from.kind || options->to.kind))
		return option_error("--from and --to cannot be combined with --ring or --every");
	return windows ? options_check_directory(options) : NULL;
}

static struct error *check_recording(const struct options *options)
{
	const bool records = options->writer == &writer_record;

	if (records && options->recording)
		return option_error(
		    "--format: only sampling writes a recording: choose another format");
	if (records && (options->from.kind || options->to.kind))
		return option_error(
		    "--from and --to do not apply while recording: use them with profiler report");
	if (!records && (options->max_size_bytes || !options->symbols))
		return option_error("--max-size and --no-symbols need -f record");
	return NULL;
}

static struct error *check_diff(const struct options *options)
{
	const struct diff_options *diff = &options->diff;

	if (options->verb->id != VERB_DIFF)
		return NULL;
	if (options->writer->shows_time && options->writer != &writer_html)
		return option_error(
		    "diff: this format cannot show a difference: use -f folded, pprof or html");
	if (diff->changed_only && options->writer != &writer_folded)
		return option_error("--changed-only needs -f folded");
	if (options->writer == &writer_html && diff->before.count + diff->after.count > 2)
		return option_error(
		    "diff: a page compares two recordings: give -f folded or pprof, or "
		    "one a side");
	return NULL;
}

static struct error *check_waits(const struct options *options)
{
	if (!options->waits_ns)
		return options->max_threads ? option_error("--max-threads needs --waits") : NULL;
	if (options->ring_ns || options->every_ns || options->from.kind || options->to.kind)
		return option_error(
		    "--waits covers the whole run: leave out --ring, --every, --from and --to");
	if (options->writer == &writer_record || options->writer->shows_time)
		return option_error("--waits: use -f pprof or -f folded");
	return NULL;
}

static struct error *check_blame(const struct options *options)
{
	if (options->blame && (options->waits_ns || options->ring_ns || options->every_ns))
		return option_error(
		    "--blame covers the whole run: leave out --waits, --ring and --every");
	return NULL;
}

static struct error *check_title(const struct options *options)
{
	return options->title && options->writer != &writer_html
	           ? option_error("--title needs -f html")
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
		return option_error("give either -p %d or a command ('%s'), not both", options->pid,
		                    options->command[0]);
	if (!options->pid && !options->command && !options->recording)
		return option_error("nothing to profile: give a process (-p PID) or a command");
	if (options->on_cpu && options->off_cpu)
		return option_error("--on-cpu and --off-cpu exclude each other: give only one");
	if (options_selection(options).states == OPTIONS_NO_STATE)
		return option_error("--state and --%s-cpu exclude each other: give only one",
		                    options->on_cpu ? "on" : "off");
	if (options->from.kind && options->from.kind == options->to.kind &&
	    options->to.ns <= options->from.ns && options->to.kind != TIME_POINT_DAY_TIME)
		return option_error("--to must be later than --from");
	return check_outputs(options);
}
