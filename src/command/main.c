// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent_command.h"
#include "children_cpu.h"
#include "clock.h"
#include "cpu_watch.h"
#include "debug_server.h"
#include "diagnose.h"
#include "diff_command.h"
#include "dump_command.h"
#include "error.h"
#include "events.h"
#include "holding.h"
#include "launch.h"
#include "memory.h"
#include "metrics.h"
#include "module.h"
#include "options.h"
#include "profile.h"
#include "profile_writer.h"
#include "push_command.h"
#include "record_writer.h"
#include "report_command.h"
#include "run_stats.h"
#include "run_table.h"
#include "sampler.h"
#include "show.h"
#include "stack_limit.h"
#include "summary.h"
#include "supervise.h"
#include "target.h"
#include "targets.h"
#include "text.h"
#include "top_command.h"
#include "tracee.h"
#include "verb.h"
#include "view_command.h"
#include "window_ends.h"
#include "windows.h"
#include "write_explain.h"
#include "writer.h"

// The file descriptors that the profiler was started with.

// Checks that the descriptor of --ready-fd is open, and keeps it from the command that is started.
// Negative: there is none.
static struct error *descriptors_keep_ready_fd(int fd)
{
	if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
		return NULL;
	return error_create(
	    EXIT_STATUS_USAGE,
	    "--ready-fd: descriptor %d is not open: open it, as the shell does with "
	    "%d>FILE",
	    fd, fd);
}

// Fills each closed standard stream with a descriptor that can be neither read nor written: else
// the next file opened would take its number, and receive the profile or messages. A command that
// is started finds it closed, as before.
static void descriptors_occupy_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		const int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode | O_CLOEXEC) != fd)
			return;
	}
}

// The line on the terminal that says how the run goes.

// The status line, which is shown at most a few times a second. A zeroed one shows nothing.
struct status_line {
	int fd; // its own way to the terminal, which never waits; 0: none
	int64_t shown_ns;
	const char *advice; // its end
};

static const int64_t STATUS_EVERY_NS = NS_PER_SECOND / 4;

// Begins a line on stderr. Shows none if that is no terminal, or may not be opened anew.
// A terminal that takes nothing, as after Ctrl-S or where the connection to it hangs, would keep
// the sampler waiting while it holds a thread, and for ever. Its flags are others' too: it is
// opened anew.
static void status_line_begin(struct status_line *status, const char *advice)
{
	const int fd = isatty(STDERR_FILENO)
	                   ? open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
	                   : -1;

	*status = (struct status_line){.fd = fd > 0 ? fd : 0, .advice = advice};
}

// Shows the state of the run. It may be called at any rate, and while threads are held.
static void status_line_update(struct status_line *status, const struct run_stats *stats)
{
	char of[32] = "";

	if (!status->fd || stats->last_ns - status->shown_ns < STATUS_EVERY_NS)
		return;
	status->shown_ns = stats->last_ns;
	if (stats->duration_ns)
		snprintf(of, sizeof(of), " of %.1f", clock_seconds(stats->duration_ns));
	dprintf(status->fd, "\rprofiler: %.1f%s s, %ju sample%s, %zu thread%s%s\x1b[K",
	        clock_seconds(stats->last_ns - stats->start_ns), of, (uintmax_t)stats->samples,
	        text_plural(stats->samples), stats->threads, text_plural(stats->threads),
	        status->advice);
}

// Makes room for another line.
static void status_line_wipe(const struct status_line *status)
{
	if (status->fd && status->shown_ns)
		dprintf(status->fd, "\r\x1b[K");
}

// Wipes the line and ends it.
static void status_line_end(struct status_line *status)
{
	if (!status->fd)
		return;
	status_line_wipe(status);
	close(status->fd);
	status->fd = 0;
}

// Everything of one run, in the order in which it comes to be.
struct session {
	struct options options;
	const struct origin *origin;
	struct events events;
	struct launch launch; // pid 0: attached
	bool unprofiled;      // the command runs, but cannot be sampled
	struct targets targets;
	int pid; // of the first one
	struct debug_sources debug_sources;
	struct modules modules;
	struct profile profile;
	struct run_told *told;   // shared with the writer, and with the agent
	struct run_stats *stats; // in it
	struct cpu_watch cpus;
	bool leaves_children;         // they are not sampled, and
	struct children_cpu children; // had used this when it began
	struct status_line status;
	struct supervise_ends reader; // of what is sampled, while that goes on
	bool says_unread;             // profiler top: what is not read is still to be said
	bool says_unmatched;          // likewise, if no thread has such a name
	struct profile_writer writer;
	struct record_writer *record;
	struct window_ends windows; // where those end that the writer writes
	struct error *metrics_error;
};

enum { UNREAD_TICKS = 50 };

// Sampling begins.
static void started(void *context)
{
	struct session *session = context;

	if (windows_are_asked(&session->options))
		window_ends_begin(&session->windows, &session->options, &session->profile,
		                  session->stats, session->record, session->pid);
}

static bool take_request(struct session *session)
{
	const bool asked = session->events.dump;

	session->events.dump = false;
	if (asked && !session->options.ring_ns)
		fputs("profiler: SIGUSR1 is ignored, as no window is kept: start with --ring=30s\n",
		      stderr);
	return asked;
}

static void write_metrics(struct session *session)
{
	if (session->options.metrics)
		session->metrics_error = metrics_write(session->options.metrics,
		                                       &(struct metrics){
		                                           .pid = session->pid,
		                                           .sampler = getpid(),
		                                           .ended = true,
		                                           .stats = session->stats,
		                                           .profile = &session->profile,
		                                           .cpus = cpu_watch_whole(&session->cpus),
		                                       });
}

// Signals --ready-fd after the first sample. A closed reader is not an error.
static void say_ready(struct session *session)
{
	if (session->options.ready_fd < 0)
		return;
	dprintf(session->options.ready_fd, "\n");
	close(session->options.ready_fd);
	session->options.ready_fd = -1;
}

// Says in profiler top what is not read, once the runtimes have had the time to begin.
static void say_unread(struct session *session, uint64_t min_ticks)
{
	if (!session->says_unread || session->stats->ticks < min_ticks)
		return;
	session->says_unread = false;
	summary_print_unread(session->stats);
}

// Says at once if no thread matches --thread. Goroutines have names when they have been read.
static void say_unmatched(struct session *session, uint64_t min_ticks)
{
	const struct options *options = &session->options;

	if (!session->says_unmatched || session->stats->ticks < min_ticks)
		return;
	session->says_unmatched = false;
	status_line_wipe(&session->status);
	summary_print_unmatched(&session->profile, &options->regexes[SELECTION_THREAD]);
}

// After each tick.
static void ticked(void *context)
{
	struct session *session = context;

	say_ready(session);
	say_unread(session, UNREAD_TICKS);
	say_unmatched(session, UNREAD_TICKS);
	status_line_update(&session->status, session->stats);
	cpu_watch_look(&session->cpus, &session->profile, session->stats, false);
	if (!record_writer_tick(session->record))
		session->events.stop = true; // nobody reads any more
}

// Before each tick but the first: all that is counted is of the past, and can be told.
static void passed(void *context)
{
	struct session *session = context;

	const bool asked = take_request(session);

	if (windows_are_asked(&session->options))
		window_ends_ticked(&session->windows, asked);
}

// Waits until the writer has opened the output. False: it could not, and has said why.
static bool await_writer(const struct session *session)
{
	const int fd = session->origin->to_writer.stream;
	char ready;

	return read(fd, &ready, 1) == 1 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

// Where debug files are, which may have unwinding rules; only the writer asks servers.
static struct error *open_debug_sources(struct session *session)
{
	const struct options *options = &session->options;

	modules_set_debug_sources(&session->modules, &session->debug_sources);
	return debug_sources_init(&session->debug_sources, options->debug_directories, false,
	                          false);
}

// The command cannot be sampled, by that error (a 32-bit program) or, where it is NULL, as it has
// privileges that the profiler has not: it runs all the same.
static void say_unprofiled(struct session *session, struct error *error)
{
	if (!error)
		fprintf(stderr,
		        "profiler: %s gets privileges from its file (set-user-ID, set-group-ID or "
		        "capabilities) and would lose them under a profiler: it runs unprofiled; "
		        "to profile it, run profiler as root (sudo)\n",
		        session->options.command[0]);
	else
		fprintf(stderr, "profiler: %s: it runs unprofiled\n", error_message(error));
	error_destroy(error);
	session->unprofiled = true;
}

// No such command: it may be a misspelt verb, or the name of a process.
static struct error *hint_at_verb(struct error *error, const char *command)
{
	const struct verb *verb = verb_similar(command);

	if (strchr(command, '/') || !text_ends_with(error_message(error), "command not found"))
		return error;
	struct error *hint =
	    verb ? error_create(EXIT_STATUS_NOT_FOUND, "%s; did you mean profiler %s?",
	                        error_message(error), verb->name)
	         : error_create(EXIT_STATUS_NOT_FOUND,
	                        "%s; to attach to a process of that name: profiler $(pidof %s)",
	                        error_message(error), command);
	error_destroy(error);
	return hint;
}

static struct error *open_target(struct session *session)
{
	const struct options *options = &session->options;
	int pid = options->pid;

	if (!pid) {
		struct error *error = launch_start(options->command, &session->events,
		                                   session->origin, &session->launch);
		if (error)
			return hint_at_verb(error, options->command[0]);
		pid = session->launch.pid;
		// Not left to target_open: exec closes files before it changes who may look (the
		// kernel's begin_new_exec), so that for a moment it need not fail.
		if (session->launch.untraced) {
			say_unprofiled(session, NULL);
			return NULL;
		}
	}
	struct error *error = session->launch.pid ? targets_open_own(pid, &session->targets)
	                                          : targets_open(options, &session->targets);
	if (error && session->launch.pid) {
		say_unprofiled(session, error);
		return NULL;
	}
	if (error)
		return error;
	session->pid = session->targets.items->pid;
	if (session->targets.n == 1)
		events_watch(&session->events, session->pid);
	return NULL;
}

static void begin_record(struct session *session)
{
	const struct options *options = &session->options;

	session->record = record_writer_create(
	    &(struct record_options){
	        .pid = session->pid,
	        .children = options_has_several(options),
	        .max_bytes = options->max_size_bytes,
	        .fd = session->reader.stream,
	        .files = session->reader.files,
	        .cpu_log = &session->cpus.log,
	    },
	    &session->profile, &session->modules, session->stats);
}

// Children that are not sampled use CPUs that the process's own samples know nothing of.
static void children_begin(struct session *session)
{
	session->leaves_children = !options_has_several(&session->options) &&
	                           (!session->options.quiet || session->options.tells_lacks) &&
	                           children_cpu_read(session->pid, &session->children);
}

// Of a command that has ended the kernel has told all when it was waited for.
static struct children_cpu children_end(const struct session *session, int64_t own_ns)
{
	struct children_cpu now;
	struct rusage usage;

	if (!session->leaves_children)
		return (struct children_cpu){0};
	if (session->launch.ended && getrusage(RUSAGE_CHILDREN, &usage) == 0)
		return (struct children_cpu){.cpu_ns = clock_of_timeval(&usage.ru_utime) +
		                                       clock_of_timeval(&usage.ru_stime) - own_ns};
	if (!children_cpu_read(session->pid, &now))
		return (struct children_cpu){0};
	now.cpu_ns -= session->children.cpu_ns;
	return now;
}

static struct error *sample(struct session *session)
{
	const struct options *options = &session->options;
	const struct sampler sampler = {
	    .frequency_hz = options->frequency_hz,
	    .duration_ns = options->duration_ns,
	    .seed = options->seed,
	    .max_frames = options->max_depth,
	    .huge_frames = options->huge_depth,
	    .runtimes = options->runtimes,
	    .runtime_frames = options->runtime_frames,
	    .max_overhead_percent = options->max_overhead_percent,
	    .stop_all = options->stop_all,
	    .children = options->children,
	    .kernel = options->kernel,
	    .locks = options->locks || options->blame || options->answers,
	    .system_tasks = options->system_tasks,
	    .no_creators = options->no_creators,
	    // The writer of a file takes what goes on to have gone on.
	    .counts_at_once = windows_are_asked(options) || !session->origin->to_writer.stream,
	    .targets = session->targets.items,
	    .n_targets = session->targets.n,
	    .launch = session->launch.pid ? &session->launch : NULL,
	    .events = &session->events,
	    .modules = &session->modules,
	    .started = started,
	    .ticked = ticked,
	    .passed = passed,
	    .context = session,
	};
	// A command gets Ctrl-C as well.
	if (!options->quiet)
		status_line_begin(&session->status,
		                  options->pid ? "; Ctrl-C ends it and writes" : "");
	session->says_unmatched =
	    options->has_regex[SELECTION_THREAD] && (!options->quiet || options->tells_lacks);
	cpu_watch_begin(&session->cpus, session->pid);
	children_begin(session);
	struct error *error = sampler_run(&sampler, &session->profile, session->stats);
	status_line_end(&session->status);
	if (!error)
		cpu_watch_look(&session->cpus, &session->profile, session->stats, true);
	return error;
}

static void end_record(struct session *session)
{
	const struct summary_counts counts = summary_count(&session->profile);
	_cleanup_free_ char *comment = summary_comment(session->stats, &counts);

	record_writer_finish(session->record, comment);
}

static void print_summary(struct session *session)
{
	const struct summary_counts counts = summary_count(&session->profile);
	bool by_others;
	_cleanup_free_ char *cpu_wait =
	    cpu_watch_text(&session->cpus, &session->profile, &by_others);

	summary_print(&(struct summary){
	    .stats = session->stats,
	    .counts = &counts,
	    .profile = &session->profile,
	    .cpu_wait = cpu_wait,
	    .children = children_end(session, counts.cpu_ns),
	    .verbose = session->options.verbose,
	});
}

// For explain, which has no summary.
static void tell_children(const struct session *session)
{
	const int64_t own_ns = summary_count(&session->profile).cpu_ns;
	const struct children_cpu children = children_end(session, own_ns);

	summary_print_children(&children, session->stats, own_ns);
}

static struct error *profile_target(struct session *session)
{
	const bool quiet = session->options.quiet;

	if (session->origin->to_writer.stream && !await_writer(session))
		return NULL;
	struct error *error = open_debug_sources(session);
	if (!error)
		error = open_target(session);
	if (!error && session->unprofiled)
		return NULL;
	unsetenv("DEBUGINFOD_URLS"); // else libdw may wait for servers; the command has its own
	if (error)
		return error;
	begin_record(session);
	error = sample(session);
	if (error)
		return error;
	say_unread(session, 0);
	say_unmatched(session, 0);
	if (!quiet)
		print_summary(session);
	else if (session->options.tells_lacks)
		tell_children(session);
	if (windows_are_asked(&session->options))
		window_ends_finish(&session->windows, session->events.target_ended);
	else
		write_metrics(session);
	end_record(session);
	return take_pointer(session->metrics_error);
}

static void session_deinit(struct session *session)
{
	launch_release(&session->launch);
	cpu_watch_deinit(&session->cpus);
	record_writer_destroy(session->record);
	window_ends_deinit(&session->windows);
	error_destroy(session->metrics_error);
	targets_close(&session->targets);
	profile_deinit(&session->profile);
	modules_deinit(&session->modules);
	debug_sources_deinit(&session->debug_sources);
	options_deinit(&session->options);
}

// The exit status of a run that ended well: a wrapped command's is its own.
static int finish(struct session *session)
{
	if (!session->launch.pid)
		return EXIT_STATUS_OK;
	launch_wait(&session->launch);
	return launch_exit_code(&session->launch);
}

// What the worker process does (supervise.h): the whole run.
static int run(void *context, const struct origin *origin)
{
	struct session *session = context;

	session->origin = origin;
	if (origin->to_writer.stream)
		session->reader = origin->to_writer;
	events_init(&session->events);
	holding_expect_end(session->options.duration_ns);
	tracee_setup();
	struct error *error = profile_target(session);
	session->told->has_ended = true;
	const int status = error ? show_error(error) : EXIT_STATUS_OK;
	launch_release(&session->launch);
	// A signal more is no reason to end otherwise; but it ends the wait for a command.
	events_deinit(&session->events, session->launch.pid != 0);
	const int command_status = finish(session);
	return status ? status : command_status;
}

static int start(struct session *session, struct supervised *supervised)
{
	if (!session->told)
		session->told = run_told_create();
	session->stats = &session->told->stats;
	session->writer.options = &session->options;
	session->writer.told = session->told;
	supervised->work = run;
	supervised->context = session;
	supervised->wrapping = session->options.command != NULL;
	const int status = supervise(supervised);
	session_deinit(session);
	return supervise_part(status);
}

// In the writer's process.
static int write_profile(void *context, const struct supervise_writer *process)
{
	struct session *session = context;

	return profile_writer_run(&session->writer, process);
}

// Writes one profile, or recording, or windows.
static int profile(struct session *session)
{
	const struct options *options = &session->options;
	return start(session, &(struct supervised){
	                          .write = write_profile,
	                          .is_kept = options->pid != 0,
	                          .worker_fd = options->ready_fd,
	                      });
}

// What profiler top shows.
static int sample_for_top(void *context, int fd, int files, const struct exec_kept *kept)
{
	struct session *session = context;
	struct options *options = &session->options;

	options->locks = true;
	session->says_unread = !options->quiet;
	options->quiet = true;
	session->reader = (struct supervise_ends){.stream = fd, .files = files};
	return start(session, &(struct supervised){.worker_fd = -1, .kept = kept});
}

static int top(struct session *session)
{
	return top_command(&session->options,
	                   &(struct top_sampler){.sample = sample_for_top, .context = session});
}

// A window of the agent's.
static int sample_for_agent(void *context, struct run_told *told)
{
	struct session *session = context;

	session->told = told;
	agent_command_prepare(&session->options);
	return start(session, &(struct supervised){
	                          .write = write_profile,
	                          .is_kept = true,
	                          .may_be_given_up = true,
	                          .worker_fd = -1,
	                      });
}

static int report(struct session *session)
{
	const struct options *options = &session->options;

	signal(SIGXFSZ, SIG_IGN); // a file larger than the limit shows as an error of write(2)
	struct error *error = options->verb->id == VERB_DIFF   ? diff_command(options)
	                      : options->verb->id == VERB_PUSH ? push_command(options)
	                      : options->verb->id == VERB_VIEW ? view_command(options)
	                      : options->verb->id == VERB_AGENT
	                          ? agent_command(&session->options, sample_for_agent, session)
	                          : report_command(options);

	options_deinit(&session->options);
	return error ? show_error(error) : EXIT_STATUS_OK;
}

int main(int argc, char **argv)
{
	static struct session session; // too large for a small stack

	descriptors_occupy_streams();
	setlocale(LC_CTYPE, ""); // --thread=REGEX matches names in the user's character set
	struct error *error = stack_limit_raise();
	error = error ? error : options_parse(argc, argv, &session.options);
	if (error)
		return show_error(error);
	if (session.options.help || session.options.version) {
		_cleanup_free_ char *text = session.options.help
		                                ? options_help(&session.options)
		                                : memory_strdup("profiler " PROFILER_VERSION "\n");
		error = show_text(text);
		return error ? show_error(error) : EXIT_STATUS_OK;
	}
	if (FOR_NOW & 1u << session.options.verb->id) {
		const int status = session.options.verb->id == VERB_DUMP
		                       ? dump_command(&session.options)
		                       : top(&session);
		options_deinit(&session.options);
		return status;
	}
	if (session.options.recording || (FOR_PUSH | FOR_AGENT) & 1u << session.options.verb->id)
		return report(&session);
	error = descriptors_keep_ready_fd(session.options.ready_fd);
	if (error) {
		options_deinit(&session.options);
		return show_error(error);
	}
	return profile(&session);
}
