// SPDX-License-Identifier: MIT
#include "dump_options.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "memory.h"
#include "option_table.h"
#include "options.h"
#include "quantity.h"
#include "verb.h"

enum { MAX_COUNT = 1000000 };

static struct error *parse_blocked(struct options *options, const char *value)
{
	if (!quantity_parse_time(value, &options->dump.blocked_ns))
		return option_error("--blocked: '%s' is not a time above 0, such as 30s", value);
	return NULL;
}

static struct error *parse_count(struct options *options, const char *value)
{
	if (!quantity_parse_count(value, MAX_COUNT, &options->dump.count))
		return option_error("--count: '%s' is not a number from 1 to %d", value, MAX_COUNT);
	return NULL;
}

static struct error *parse_interval(struct options *options, const char *value)
{
	if (!quantity_parse_time(value, &options->dump.interval_ns))
		return option_error("--interval: '%s' is not a time above 0, such as 1s", value);
	return NULL;
}

static struct error *parse_at(struct options *options, const char *value)
{
	if (time_point_parse(value, &options->dump.at))
		return NULL;
	return option_error(
	    "--at: '%s' is not a time: give one since the start, such as 5s or 1.5m, "
	    "or of the day, such as 14:03:07 or 2026-11-20T14:03:07Z",
	    value);
}

// clang-format off
#define FLAG(name, field, text)                                                                    \
	{.long_name = (name), .help = (text), .flag_offset = offsetof(struct options, dump.field), \
	 .flag_value = true}
#define VALUE(letter, name, arg, function, text)                                                   \
	{.short_name = (letter), .long_name = (name), .argument = (arg), .help = (text),           \
	 .parse = (function)}

static const struct option_row own_rows[] = {
	{.help = "What is shown:", .verbs = FOR_DUMP},
	FLAG("json", json, "print JSON, one object per line and dump"),
	FLAG("all-frames", all_frames, "one line for each frame, and deep stacks whole"),
	FLAG("no-group", no_group, "print each thread by itself, even if stacks are equal"),
	FLAG("no-locks", no_locks, "do not find out who holds what threads wait for"),
	VALUE('n', "count", "N", parse_count, "take N dumps; threads that have not run since the\n"
	      "previous one are marked"),
	VALUE(0, "interval", "TIME", parse_interval, "time between dumps; default 1s"),
	VALUE(0, "at", "WHEN", parse_at, "for a recording: what threads did at WHEN, a time\n"
	      "since its start (5s) or of the day (14:03:07)"),
	FLAG("check", check, "exit with 10 if there is a deadlock, else with 11 if\n"
	      "a thread has been blocked for longer than --blocked"),
	VALUE(0, "blocked", "TIME", parse_blocked, "for --check: how long a thread may wait for a lock,\n"
	      "file, socket or pipe"),
};
// clang-format on

const struct option_table dump_rows = {.rows = own_rows, .n_rows = array_size(own_rows)};

// 12 or 12,13
static bool is_numbers(const char *text)
{
	return isdigit((unsigned char)text[0]) && text[strspn(text, "0123456789, \t\n")] == '\0';
}

// A recording; people also give the name of a process.
static struct error *take_file(struct options *options, const char *file)
{
	options->recording = file;
	if (strcmp(file, "-") == 0 || access(file, F_OK) == 0 || errno != ENOENT)
		return NULL;
	if (strchr(file, '/'))
		return option_error("%s: there is no file '%s'", options->verb->name, file);
	return option_error("%s: '%s' is neither a process id nor a file; for the id of a process: "
	                    "pidof %s",
	                    options->verb->name, file, file);
}

struct error *dump_take_word(struct options *options, const char *word)
{
	const bool is_pids = is_numbers(word);

	if (options->recording || (options->pid && !is_pids))
		return option_error("%s: give processes or one file: '%s' is one more",
		                    options->verb->name, word);
	if (!is_pids)
		return take_file(options, word);
	_cleanup_free_ char *what = memory_printf("%s:", options->verb->name);
	return options_add_pids(options, word, what);
}

static struct error *check(const struct options *options)
{
	const struct dump_options *dump = &options->dump;

	if (!options->pid && !options->recording)
		return option_error("dump: give a process: profiler dump PID; to run a command of "
		                    "that name: profiler -- dump");
	if (options->pid && dump->at.kind)
		return option_error("--at needs a recording: profiler dump FILE.wprof --at=WHEN");
	if (options->recording && !dump->at.kind)
		return option_error("dump: to look into a recording, say when: --at=WHEN");
	if (options->recording && dump->count > 1)
		return option_error("--count does not apply to recordings: leave it out");
	if (dump->interval_ns && !dump->count)
		return option_error("--interval needs --count");
	if (dump->check && dump->no_locks)
		return option_error("--check looks at locks: leave out --no-locks");
	if (dump->blocked_ns && !dump->check)
		return option_error("--blocked needs --check");
	return NULL;
}

struct error *dump_check(struct options *options)
{
	struct error *error = check(options);

	if (!options->dump.count)
		options->dump.count = 1;
	if (!options->dump.interval_ns)
		options->dump.interval_ns = NS_PER_SECOND;
	return error;
}
