// SPDX-License-Identifier: MIT
#include "dump_command.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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
#include "options.h"
#include "output.h"
#include "show.h"
#include "summary.h"
#include "supervise.h"
#include "tracee.h"

// How often a thread had run.
struct thread_runs {
	int tid;
	uint64_t runs;
};

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
	                },
	                stream);
}

// Those that wait for work may do so for ever.
static bool has_blocked(const struct dump *dump, int64_t blocked_ns)
{
	for (size_t i = 0; i < dump->n_threads; i++)
		if (dump->threads[i].blocked_ns > blocked_ns &&
		    wait_kind_is_blocked(dump->threads[i].kind) && !dump->threads[i].is_idle)
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
			summary_print_other_go(&live.modules);
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
	struct error *error =
	    debug_sources_init(&run->sources, options->debug_directories, options->debuginfod,
	                       !options->quiet && isatty(STDERR_FILENO));

	unsetenv("DEBUGINFOD_URLS"); // else libdw may ask
	return error ? error : output_open(options->output ?: "-", false, &run->output);
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
