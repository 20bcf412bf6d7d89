// SPDX-License-Identifier: MIT
#include "top_options.h"

#include <limits.h>
#include <stddef.h>

#include "clock.h"
#include "error.h"
#include "memory.h"
#include "option_table.h"
#include "options.h"
#include "quantity.h"
#include "verb.h"
#include "writer.h"

enum { MAX_COUNT = 1000000000 };

#define MIN_INTERVAL_NS (100 * NS_PER_MS)

static struct error *parse_count(struct options *options, const char *value)
{
	if (!quantity_parse_count(value, MAX_COUNT, &options->top.count))
		return option_error("--count: '%s' is not a number from 1 to %d", value, MAX_COUNT);
	return NULL;
}

static struct error *parse_interval(struct options *options, const char *value)
{
	if (!quantity_parse_time(value, &options->top.interval_ns) ||
	    options->top.interval_ns < MIN_INTERVAL_NS)
		return option_error("--interval: '%s' is not a time of at least 100ms", value);
	return NULL;
}

static struct error *parse_window(struct options *options, const char *value)
{
	if (!quantity_parse_time(value, &options->top.window_ns))
		return option_error("--window: '%s' is not a time above 0, such as 10s", value);
	return NULL;
}

static struct error *parse_view(struct options *options, const char *value)
{
	options->top.view = top_view_named(value);
	if (options->top.view >= TOP_STACK)
		return option_error("--view: '%s' is unknown: give threads, functions, tree or "
		                    "waits",
		                    value);
	return NULL;
}

static struct error *parse_sort(struct options *options, const char *value)
{
	options->top.sort = value;
	return NULL;
}

// clang-format off
#define VALUE(letter, name, arg, function, text)                                                   \
	{.short_name = (letter), .long_name = (name), .argument = (arg), .help = (text),           \
	 .parse = (function)}

static const struct option_row own_rows[] = {
	{.help = "What is shown:", .verbs = FOR_TOP},
	VALUE(0, "view", "VIEW", parse_view, "rows: threads (the default), functions, tree or waits"),
	VALUE(0, "sort", "COLUMN", parse_sort, "sort by this column, such as run or tid"),
	{.long_name = "idle", .help = "show idle threads, and count idle time",
	 .flag_offset = offsetof(struct options, top.idle), .flag_value = true},
	{.long_name = "raw", .help = "show functions as sampled, not by your own code",
	 .flag_offset = offsetof(struct options, top.raw), .flag_value = true},
	VALUE(0, "interval", "TIME", parse_interval, "update every TIME; default 1s"),
	VALUE(0, "window", "TIME", parse_window, "on a terminal: add up this much time; default 10s"),
	VALUE('n', "count", "N", parse_count, "stop after N intervals, and print plain tables"),
	{.long_name = "json", .help = "print JSON, one object per line and interval",
	 .flag_offset = offsetof(struct options, top.json), .flag_value = true},
};
// clang-format on

const struct option_table top_rows = {.rows = own_rows, .n_rows = array_size(own_rows)};

struct error *top_take_word(struct options *options, const char *word)
{
	return dump_take_word(options, word); // a process or a recording, likewise
}

static struct error *check(const struct options *options)
{
	const int n_given =
	    (options->pid != 0) + (options->recording != NULL) + (options->command != NULL);

	if (n_given == 0)
		return option_error(
		    "top: give a process, a recording or a command: profiler top PID, FILE.wprof "
		    "or -- COMMAND; to run a command of that name: profiler -- top");
	if (n_given > 1)
		return option_error("top: give only one: a process, a recording or a command");
	if (options->output && options->recording)
		return option_error(
		    "top: --output saves what is sampled now: leave it out for a recording");
	if (options->output && writer_by_file_name(options->output) != &writer_record)
		return option_error("top: --output saves a recording: give a FILE.wprof");
	if (options->top.sort && top_view_column(options->top.view, options->top.sort) < 0)
		return option_error("--sort: the %s view has no column '%s'",
		                    top_view_name(options->top.view), options->top.sort);
	return NULL;
}

struct error *top_check(struct options *options)
{
	struct error *error = check(options);

	if (!options->top.interval_ns)
		options->top.interval_ns = NS_PER_SECOND;
	if (!options->top.window_ns)
		options->top.window_ns = 10 * NS_PER_SECOND;
	return error;
}
