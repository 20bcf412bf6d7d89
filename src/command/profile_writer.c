// SPDX-License-Identifier: MIT
#include "profile_writer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cpu_waits.h"
#include "debug_server.h"
#include "error.h"
#include "memory.h"
#include "options.h"
#include "output.h"
#include "profile.h"
#include "record_copy.h"
#include "recording.h"
#include "run_table.h"
#include "show.h"
#include "stuck_worker.h"
#include "summary.h"
#include "supervise.h"
#include "symbolize.h"
#include "verb.h"
#include "view.h"
#include "windows.h"
#include "write_report.h"
#include "writer.h"

enum { READ_BYTES = 1 << 18, LOOK_MS = 500, WINDOW_NICE = 10 };

// Everything of one profile.
struct writing_run {
	const struct options *options; // borrowed, as the next two
	struct run_told *told;
	const struct supervise_writer *process;
	struct stuck_worker worker; // after the supervisor's end
	struct debug_sources sources;
	struct output *output; // NULL: only the tables are shown
	struct recording recording;
	struct record_copy copy;   // -f record
	bool writes_windows;       // ...else one file:
	struct windows windows;    // the former
	struct view view;          // what of the profile is written
	struct error *begin_error; // nothing
	bool has_begun;            // there is something in the recording
	char *table;               // of a command, to be shown when it has ended; NULL: none
};

// The tables are shown all the same.
static void say_no_page(const struct writing_run *run, struct error *error)
{
	if (error && !run->options->quiet)
		fprintf(stderr, "profiler: no page with the whole profile: %s\n",
		        error_message(error));
	error_destroy(error);
}

static struct error *open_output(struct writing_run *run)
{
	const struct options *options = run->options;
	const char *path = options->output;

	if (options->answers && options->waits_ns)
		return NULL;
	if (options->answers) {
		say_no_page(run, output_open(NULL, false, &run->output));
		return NULL;
	}
	if (!path && options->pid)
		path = "-"; // as in profiler -p PID | flamegraph.pl; a command's stdout is its own
	struct error *error = output_open(path, options->writer->binary, &run->output);
	if (!error && options->verb->id == VERB_EXPLAIN)
		output_set_text(run->output);
	return error;
}

// Where a wrapped command's profile goes when nobody said where.
static char *default_path(const struct writing_run *run)
{
	if (run->options->output || run->options->pid)
		return NULL;
	return memory_printf("profiler.%d%s", run->recording.pid,
	                     run->options->writer->default_suffix);
}

// The file of a recording is there from the beginning, and grows; one without a header replaces
// nothing.
static struct error *begin_file(struct writing_run *run)
{
	_cleanup_free_ char *path = default_path(run);
	struct error *error = view_begin(&run->view, run->options, &run->recording.profile);

	if (error || !run->recording.copy || run->copy.failed)
		return error;
	return output_publish(run->output, path);
}

static void begin_writing(void *context)
{
	struct writing_run *run = context;

	run->has_begun = true;
	if (run->writes_windows)
		windows_begin(&run->windows);
	else
		run->begin_error = begin_file(run);
}

static void end_window(void *context, const struct window_end *end)
{
	struct writing_run *run = context;

	if (run->writes_windows)
		windows_end_window(&run->windows, end);
}

static void collect(void *context)
{
	struct writing_run *run = context;

	if (run->writes_windows)
		windows_collect(&run->windows);
}

// As many files may be open as the one that samples has.
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void copy_recording(struct writing_run *run)
{
	run->copy = (struct record_copy){
	    .fd = output_fd(run->output),
	    .max_bytes = run->options->max_size_bytes,
	};
	run->recording.copy = &run->copy;
}

// Opens all that may be refused before the target is touched; then says that it may be.
static struct error *begin(struct writing_run *run)
{
	const struct options *options = run->options;
	struct recording *recording = &run->recording;

	recording_begin_stream(recording);
	struct error *error = options_debug_sources(options, &run->sources);
	if (!error && run->writes_windows)
		error = windows_open(&run->windows, options, recording, &run->told->stats,
		                     run->process);
	else if (!error)
		error = open_output(run);
	if (error)
		return error;
	if (options->writer == &writer_record)
		copy_recording(run);
	raise_file_limit();
	recording->started = begin_writing;
	recording->window_ended = end_window;
	recording->may_collect = collect;
	recording->context = run;
	modules_set_debug_sources(&recording->modules, &run->sources);
	return NULL;
}

static void say_ready(const struct writing_run *run)
{
	send(run->process->ends.stream, "", 1, MSG_NOSIGNAL);
}

// Waits for more of the stream, and looks after the one that samples where nobody else does.
// Returns how much has come; 0: nothing comes any more.
static size_t await(struct writing_run *run, uint8_t *bytes, size_t size)
{
	struct pollfd pollfd = {.fd = run->process->ends.stream, .events = POLLIN};

	for (;;) {
		poll(&pollfd, 1, LOOK_MS);
		const ssize_t n = recv(pollfd.fd, bytes, size, MSG_DONTWAIT);
		if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			return n > 0 ? (size_t)n : 0;
		if (getppid() != run->process->supervisor)
			stuck_worker_look_at_orphan(&run->worker);
		if (run->writes_windows && run->has_begun)
			windows_poll(&run->windows);
	}
}

// Reads the stream until its end.
static void follow(struct writing_run *run)
{
	static uint8_t bytes[READ_BYTES];
	struct recording *recording = &run->recording;
	size_t n;

	while (!recording->whole && !run->begin_error && !run->copy.failed &&
	       (n = await(run, bytes, sizeof(bytes))) > 0) {
		recording_take_files(recording, run->process->ends.files);
		if (!recording_feed(recording, bytes, n))
			break;
		if (run->writes_windows && run->has_begun)
			windows_poll(&run->windows);
	}
	recording_end_stream(recording);
	recording_follow_clock(recording);
}

// Forgets the signals that have ended sampling: a later one ends a write that nobody reads.
static void forget_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};
	const struct timespec now = {0};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < array_size(numbers); i++)
		sigaddset(&set, numbers[i]);
	while (sigtimedwait(&set, NULL, &now) > 0)
		;
}

// The figures of a run that was killed: what it sampled last is not in the recording.
static struct run_stats cut_stats(const struct writing_run *run,
                                  const struct summary_counts *counts)
{
	const struct recording *recording = &run->recording;
	struct run_stats stats = run->told->stats;

	stats.ticks = recording->ticks;
	stats.missed_ticks = recording->missed_ticks;
	stats.thinned_ticks = recording->thinned_ticks;
	stats.held_ns = recording->held_ns;
	stats.last_ns = stats.start_ns + recording->profile.duration_ns;
	stats.end_ns = 0;
	stats.samples = 0;
	for (int end = 0; end < N_STACK_ENDS; end++)
		stats.samples += counts->by_end[end];
	return stats;
}

// Where the one that samples could not any more.
static void print_summary(const struct writing_run *run, const struct run_stats *stats,
                          const struct summary_counts *counts)
{
	const struct profile *profile = &run->recording.profile;
	const struct cpu_waits cpus = cpu_log_between(&run->recording.cpu_log, 0, INT64_MAX);
	bool by_others;
	_cleanup_free_ char *cpu_wait =
	    cpu_waits_text(&cpus, cpu_waits_count_threads(profile), &by_others);

	summary_print(&(struct summary){
	    .stats = stats,
	    .counts = counts,
	    .profile = profile,
	    .cpu_wait = cpu_wait,
	    .verbose = run->options->verbose,
	});
}

// Shows the tables; those of a command when it has ended, as it has the terminal until then.
static void answer(struct writing_run *run, const struct report_source *source)
{
	const struct options *options = run->options;
	struct output *output = NULL;
	size_t size;

	if (options->quiet)
		return;
	FILE *stream = open_memstream(&run->table, &size);
	if (!stream)
		return;
	run_table_write(options, source,
	                run_table_width(options->pid ? STDOUT_FILENO : STDERR_FILENO), stream);
	fclose(stream);
	if (!options->pid)
		return;
	struct error *error = output_open("-", false, &output);
	if (!error) {
		fputs(run->table, output_stream(output));
		error = output_finish(output, NULL);
	}
	output_destroy(output);
	error_destroy(error); // the page is written all the same
}

// A page that cannot be written is no failure: the tables are shown.
static struct error *finish_page(struct writing_run *run)
{
	_cleanup_free_ char *stem = memory_printf("profiler.%d", run->recording.pid);

	if (!run->output)
		return NULL;
	struct error *error = output_finish_new(run->output, stem, ".html");
	if (error) {
		say_no_page(run, error);
		output_destroy(take_pointer(run->output));
	}
	return NULL;
}

// Writes the profile, or what a recording still lacks.
static struct error *write_output(struct writing_run *run, const struct report_source *source)
{
	const struct options *options = run->options;

	if (!run->recording.copy)
		return write_report(options, source, output_stream(run->output));
	record_copy_finish(&run->copy, &run->recording, options->symbols ? source->symbols : NULL);
	return run->copy.failed ? output_refuse(run->output, run->copy.failed) : NULL;
}

static struct error *write_named(struct writing_run *run)
{
	const struct options *options = run->options;
	_cleanup_free_ char *path = run->recording.copy ? NULL : default_path(run);

	struct error *error = view_end(&run->view);
	if (error)
		return error;
	const struct report_source *source = view_source(&run->view, &run->recording);
	if (options->answers)
		answer(run, source);
	if (run->output)
		error = write_output(run, source);
	if (!error)
		error = options->answers ? finish_page(run) : output_finish(run->output, path);
	if (!error && options->symbols && !options->quiet)
		write_report_findings(options, source);
	return error;
}

static struct error *write_profile(struct writing_run *run)
{
	const struct options *options = run->options;
	const struct symbolize_options names = {.inlines = options->inlines,
	                                        .cache = options->agent.names};
	struct recording *recording = &run->recording;
	_cleanup_free_ char *root = memory_printf("/proc/%d/root", recording->pid);

	if (options->agent.comments) { // a window of the agent's: nobody waits for it
		if (recording->profile.n_samples == 0)
			return NULL;
		setpriority(PRIO_PROCESS, 0, WINDOW_NICE);
	}
	if (options->symbols)
		recording_find_names(recording, root, &names);
	struct error *error = write_named(run);
	if (!options->quiet || options->tells_lacks)
		summary_print_names(&recording->profile, &recording->modules,
		                    !error && options->symbols ? &recording->symbols : NULL);
	run->told->is_written = !error;
	if (!error && !options->quiet && run->output)
		summary_print_output(options->writer, output_name(run->output));
	return error;
}

// Says what the one that samples would have said in the end.
static void complete(struct writing_run *run)
{
	const struct summary_counts counts = summary_count(&run->recording.profile);
	const struct run_stats stats = cut_stats(run, &counts);

	free(run->recording.comment);
	run->recording.comment = summary_comment(&stats, &counts);
	if (!run->options->quiet)
		print_summary(run, &stats, &counts);
}

// Sampling is over, or nobody knows more of it.
static struct error *end(struct writing_run *run)
{
	if (run->begin_error)
		return take_pointer(run->begin_error);
	if (run->copy.failed)
		return output_refuse(run->output, run->copy.failed);
	if (!run->has_begun && !run->told->has_ended)
		return error_create(EXIT_STATUS_TARGET,
		                    "no profile: sampling ended before its first sample");
	if (!run->has_begun)
		return NULL; // it has said why
	if (!run->recording.whole)
		complete(run);
	return run->writes_windows ? windows_end(&run->windows) : write_profile(run);
}

// Nothing is told any more, but the command may still run.
static void await_end(struct writing_run *run)
{
	uint8_t bytes[64];

	while (await(run, bytes, sizeof(bytes)) > 0)
		;
}

static void deinit(struct writing_run *run)
{
	windows_deinit(&run->windows);
	view_deinit(&run->view);
	recording_deinit(&run->recording);
	record_copy_deinit(&run->copy);
	output_destroy(run->output);
	debug_sources_deinit(&run->sources);
	error_destroy(run->begin_error);
	free(run->table);
}

struct run_told *run_told_create(void)
{
	void *memory = mmap(NULL, sizeof(struct run_told), PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory != MAP_FAILED)
		return memory;
	fprintf(stderr, "profiler: no memory: %s\n", strerror(errno));
	exit(EXIT_STATUS_OUTPUT);
}

void run_told_destroy(struct run_told *told)
{
	if (told)
		munmap(told, sizeof(*told));
}

int profile_writer_run(void *context, const struct supervise_writer *process)
{
	const struct profile_writer *writer = context;
	struct writing_run run = {
	    .options = writer->options,
	    .told = writer->told,
	    .process = process,
	    .writes_windows = windows_are_asked(writer->options),
	};

	signal(SIGPIPE, SIG_IGN); // they show as errors of write(2)
	signal(SIGXFSZ, SIG_IGN);
	stuck_worker_init_orphan(&run.worker, process->worker);
	struct error *error = begin(&run);
	if (!error) {
		say_ready(&run);
		follow(&run);
		forget_signals();
		error = end(&run);
	}
	const int status = error ? show_error(error) : EXIT_STATUS_OK;
	if (run.table && !writer->options->pid) {
		await_end(&run);
		fputs(run.table, stderr);
	}
	deinit(&run);
	return status;
}
