// SPDX-License-Identifier: MIT
#include "dump_command.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "debug_server.h"
#include "dump_json.h"
#include "dump_live.h"
#include "dump_past.h"
#include "dump_problems.h"
#include "dump_text.h"
#include "error.h"
#include "events.h"
#include "memory.h"
#include "option_table.h"
#include "options.h"
#include "output.h"
#include "quantity.h"
#include "show.h"
#include "summary.h"
#include "supervise.h"
#include "tracee.h"
#include "verb.h"

// How often a thread had run.
struct thread_runs {
	int tid;
	uint64_t runs;
};

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
	VALUE('n', "count", "N", parse_count, "take N dumps; threads that have not run since the\n"
	      "previous one are marked"),
	VALUE(0, "interval", "TIME", parse_interval, "time between dumps; default 1s"),
	FLAG("check", check, "exit with 10 if there is a deadlock, else with 11 if\n"
	      "a thread has been blocked for longer than --blocked"),
	VALUE(0, "blocked", "TIME", parse_blocked, "for --check: how long a thread may wait for a lock,\n"
	      "file, socket or pipe"),
	VALUE(0, "at", "WHEN", parse_at, "for a recording: what threads did at WHEN, a time\n"
	      "since its start (5s) or of the day (14:03:07)"),
	FLAG("json", json, "print JSON, one object per line and dump"),
	FLAG("all-frames", all_frames, "one line for each frame; deep stacks and long\n"
	      "names whole"),
	FLAG("no-group", no_group, "print each thread by itself, even if stacks are equal"),
	FLAG("no-locks", no_locks, "do not find out who holds what threads wait for"),
	{.short_name = 'o', .long_name = "output", .argument = "FILE", .rare = true,
	 .help = "write to FILE instead of standard output"},
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

static struct error *check_given(const struct options *options)
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
	struct error *error = check_given(options);

	if (!options->dump.count)
		options->dump.count = 1;
	if (!options->dump.interval_ns)
		options->dump.interval_ns = NS_PER_SECOND;
	return error;
}

// Everything of one run, in the worker process.
struct dump_run {
	const struct options *options; // borrowed
	struct events events;
	struct debug_sources sources;
	struct output *output;
	int verdict;              // of --check, as exit status
	struct thread_runs *last; // of the dump before, by tid
	size_t n_last;
};

static void write_dump(const struct options *options, const struct dump *dump, FILE *stream)
{
	if (options->dump.json) {
		dump_json_write(dump, stream);
		return;
	}
	dump_text_write(dump,
	                &(struct dump_text_options){
	                    .all_frames = options->dump.all_frames,
	                    .no_group = options->dump.no_group,
	                    .blocked_ns = options->dump.blocked_ns,
	                },
	                stream);
}

static bool has_blocked(const struct dump *dump, int64_t blocked_ns)
{
	for (size_t i = 0; i < dump->n_threads; i++)
		if (dump_is_blocked(&dump->threads[i], blocked_ns))
			return true;
	return false;
}

static void check(struct dump_run *run, const struct dump *dump)
{
	const struct dump_options *options = &run->options->dump;

	if (!options->check || run->verdict == EXIT_STATUS_DEADLOCK)
		return;
	if (dump_count_deadlocks(dump) > 0)
		run->verdict = EXIT_STATUS_DEADLOCK;
	else if (options->blocked_ns && has_blocked(dump, options->blocked_ns))
		run->verdict = EXIT_STATUS_BLOCKED;
}

static int compare_runs(const void *a_pointer, const void *b_pointer)
{
	const int a = ((const struct thread_runs *)a_pointer)->tid;
	const int b = ((const struct thread_runs *)b_pointer)->tid;

	return (a > b) - (a < b);
}

// Marks those that have slept on since the dump before, and keeps this one's.
static void mark_unmoved(struct dump_run *run, struct dump *dump)
{
	struct thread_runs *now = memory_alloc_zeroed(dump->n_threads + 1, sizeof(*now));

	for (size_t i = 0; i < dump->n_threads; i++) {
		struct dump_thread *thread = &dump->threads[i];
		now[i] = (struct thread_runs){dump_thread_of(dump, thread)->tid, thread->runs};
		const struct thread_runs *last =
		    run->last ? bsearch(&now[i], run->last, run->n_last, sizeof(*now), compare_runs)
		              : NULL;
		thread->unmoved = last && last->runs != 0 && last->runs == thread->runs;
	}
	qsort(now, dump->n_threads, sizeof(*now), compare_runs);
	free(run->last);
	run->last = now;
	run->n_last = dump->n_threads;
}

// A check of no thread finds no fault.
static void say_unmatched(const struct options *options, const struct dump *dump)
{
	if (dump->n_threads == 0 && options->has_regex[SELECTION_THREAD])
		summary_print_unmatched(dump->profile, &options->regexes[SELECTION_THREAD]);
}

static struct error *dump_once(struct dump_run *run)
{
	struct dump_live live;
	struct error *error = dump_live_take(run->options, &run->events, &run->sources, &live);

	if (!error) {
		mark_unmoved(run, &live.dump);
		write_dump(run->options, &live.dump, output_stream(run->output));
		check(run, &live.dump);
		if (!run->options->quiet) {
			summary_print_runtimes(&live.stats);
			summary_print_other_tasks(&live.modules);
			say_unmatched(run->options, &live.dump);
		}
	}
	dump_live_deinit(&live);
	return error;
}

// Ends with the first one that fails, or that nobody reads any more; those before it stay.
static struct error *dump_all(struct dump_run *run)
{
	const struct dump_options *options = &run->options->dump;
	const int64_t start_ns = clock_now_ns();
	struct error *error = NULL;
	bool is_read = true;
	long n = 0;

	for (; n < options->count && is_read && !error; n += !error) {
		const int64_t due_ns = start_ns + n * options->interval_ns;
		while (n > 0 && !run->events.stop && !run->events.target_ended &&
		       clock_now_ns() < due_ns)
			events_wait(&run->events, due_ns);
		if (run->events.stop || (n > 0 && run->events.target_ended))
			break;
		if (n > 0 && !options->json)
			fputc('\n', output_stream(run->output));
		error = dump_once(run);
		is_read = fflush(output_stream(run->output)) == 0;
	}
	if (error && n == 0)
		return error;
	struct error *unwritten = output_finish(run->output, NULL);
	if (!error)
		return unwritten;
	error_destroy(unwritten);
	return error;
}

static struct error *open_run(struct dump_run *run)
{
	const struct options *options = run->options;
	struct error *error = options_debug_sources(options, &run->sources);

	if (!error)
		error = output_open(options->output ?: "-", false, &run->output);
	if (!error)
		output_set_text(run->output);
	return error;
}

static int close_run(struct dump_run *run, struct error *error)
{
	free(run->last);
	output_destroy(run->output);
	debug_sources_deinit(&run->sources);
	return error ? show_error(error) : run->verdict;
}

static int work(void *context, const struct origin *origin)
{
	struct dump_run *run = context;

	(void)origin;
	events_init(&run->events);
	tracee_setup();
	struct error *error = open_run(run);
	if (!error)
		error = dump_all(run);
	const int status = close_run(run, error);
	events_deinit(&run->events, true);
	return status;
}

// What is long past needs no process of its own.
static int dump_recording(struct dump_run *run)
{
	struct dump_past past = {0};

	signal(SIGXFSZ, SIG_IGN); // a file larger than the limit shows as an error of write(2)
	struct error *error = open_run(run);

	if (!error)
		error = dump_past_take(run->options, &run->sources, &past);
	if (!error) {
		write_dump(run->options, &past.dump, output_stream(run->output));
		check(run, &past.dump);
		error = output_finish(run->output, NULL);
	}
	dump_past_deinit(&past);
	return close_run(run, error);
}

int dump_command(const struct options *options)
{
	struct dump_run run = {.options = options};

	if (options->recording)
		return dump_recording(&run);
	return supervise_part(
	    supervise(&(struct supervised){.work = work, .context = &run, .worker_fd = -1}));
}
