// SPDX-License-Identifier: MIT
#include "option_rows.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "option_table.h"
#include "options.h"
#include "quantity.h"
#include "runtimes.h"
#include "verb.h"
#include "writer.h"

enum {
	MAX_MAX_DEPTH = 65536,
	MAX_FREQUENCY_HZ = 10000,
	MIN_MAX_SIZE_BYTES = 1 << 20,
};

static struct error *parse_pid(struct options *options, const char *value)
{
	return options_add_pids(options, value, "--pid:");
}

static struct error *parse_duration(struct options *options, const char *value)
{
	if (!quantity_parse_time(value, &options->duration_ns))
		return option_error("--duration: '%s' is not a time above 0: give one such as 30, "
		                    "1.5s, 500ms, 2m or 1h30m",
		                    value);
	return NULL;
}

static struct error *parse_frequency(struct options *options, const char *value)
{
	double hz;
	const char *rest = quantity_parse_decimal(value, &hz);

	if (!rest || *rest || hz < 1 || hz > MAX_FREQUENCY_HZ)
		return option_error("--frequency: '%s' is not a number from 1 to %d", value,
		                    MAX_FREQUENCY_HZ);
	options->frequency_hz = hz;
	return NULL;
}

static struct error *parse_max_depth(struct options *options, const char *value)
{
	long depth;

	if (!quantity_parse_count(value, MAX_MAX_DEPTH, &depth))
		return option_error("--max-depth: '%s' is not a whole number from 1 to %d", value,
		                    MAX_MAX_DEPTH);
	options->max_depth = options->huge_depth = (uint32_t)depth;
	return NULL;
}

static struct error *parse_runtimes(struct options *options, const char *value)
{
	if (!runtimes_parse(value, &options->runtimes))
		return option_error("--runtimes: '%s' is unknown: give auto, none, or some "
		                    "of go,java,python,v8",
		                    value);
	return NULL;
}

static struct error *parse_frames(struct options *options, const char *value)
{
	static const char *const names[] = {
	    [RUNTIME_FRAMES_AUTO] = "auto",
	    [RUNTIME_FRAMES_ALL] = "all",
	    [RUNTIME_FRAMES_OWN] = "python",
	};

	if (strcmp(value, "native") == 0) {
		options->runtimes = 0;
		return NULL;
	}
	for (size_t i = 0; i < array_size(names); i++) {
		if (strcmp(value, names[i]) != 0)
			continue;
		options->runtime_frames = (enum runtime_frames)i;
		return NULL;
	}
	return option_error("--frames: '%s' is unknown: give auto, all, python or native", value);
}

static struct error *parse_max_overhead(struct options *options, const char *value)
{
	double percent;
	const char *rest = quantity_parse_decimal(value, &percent);

	if (rest && *rest == '%')
		rest++;
	if (!rest || *rest || percent < 0 || percent > 100)
		return option_error(
		    "--max-overhead: '%s' is not a percentage from 0 (no limit) to 100", value);
	options->max_overhead_percent = percent;
	return NULL;
}

static struct error *parse_time_point(const char *option, const char *value, struct time_point *ret)
{
	if (time_point_parse(value, ret))
		return NULL;
	return option_error(
	    "--%s: '%s' is not a time: give one since the start, such as 5s or 1.5m, or "
	    "of the day, such as 14:03:07 or 2026-11-20T14:03:07Z",
	    option, value);
}

static struct error *parse_from(struct options *options, const char *value)
{
	return parse_time_point("from", value, &options->from);
}

static struct error *parse_to(struct options *options, const char *value)
{
	return parse_time_point("to", value, &options->to);
}

static struct error *parse_max_size(struct options *options, const char *value)
{
	if (!quantity_parse_size(value, &options->max_size_bytes) ||
	    options->max_size_bytes < MIN_MAX_SIZE_BYTES)
		return option_error("--max-size: '%s' is not a size of at least 1M, such as 20M",
		                    value);
	return NULL;
}

// Adds to a NULL-terminated list.
static void add_string(const char ***list, size_t *n, size_t *capacity, const char *value)
{
	*list = memory_grow(*list, capacity, *n + 2, sizeof(**list));
	(*list)[(*n)++] = value;
	(*list)[*n] = NULL;
}

static struct error *parse_debug_dir(struct options *options, const char *value)
{
	if (!*value)
		return option_error("--debug-dir: the directory's name is empty: give one");
	add_string(&options->debug_directories, &options->n_debug_directories,
	           &options->debug_directories_capacity, value);
	return NULL;
}

static struct error *parse_ring(struct options *options, const char *value)
{
	if (!quantity_parse_time(value, &options->ring_ns))
		return option_error(
		    "--ring: '%s' is not a time above 0: give one such as 30s or 5m", value);
	return NULL;
}

static struct error *parse_ring_size(struct options *options, const char *value)
{
	if (!quantity_parse_size(value, &options->ring_bytes) ||
	    options->ring_bytes < MIN_MAX_SIZE_BYTES)
		return option_error("--ring-size: '%s' is not a size of at least 1M, such as 64M",
		                    value);
	return NULL;
}

static struct error *parse_dump_when(struct options *options, const char *value)
{
	if (!triggers_parse(value, &options->triggers))
		return option_error(
		    "--dump-when: '%s' is not a condition: give some of blocked>TIME, "
		    "cpu>PERCENT, cpu<PERCENT and death, with commas between them",
		    value);
	return NULL;
}

static struct error *parse_waits(struct options *options, const char *value)
{
	if (!quantity_parse_time(value, &options->waits_ns))
		return option_error("--waits: '%s' is not a time above 0, such as 1s", value);
	return NULL;
}

static struct error *parse_max_threads(struct options *options, const char *value)
{
	long n;

	if (!quantity_parse_count(value, INT_MAX, &n))
		return option_error("--max-threads: '%s' is not a number, 1 or more", value);
	options->max_threads = (size_t)n;
	return NULL;
}

static struct error *parse_every(struct options *options, const char *value)
{
	if (!quantity_parse_time(value, &options->every_ns))
		return option_error("--every: '%s' is not a time above 0: give one such as 60s",
		                    value);
	return NULL;
}

static struct error *parse_keep(struct options *options, const char *value)
{
	long keep;

	if (!quantity_parse_count(value, INT_MAX, &keep))
		return option_error("--keep: '%s' is not a number of files, 1 or more", value);
	options->keep = (size_t)keep;
	return NULL;
}

static struct error *parse_exec(struct options *options, const char *value)
{
	if (!*value)
		return option_error("--exec: the command is empty: give one");
	options->exec = value;
	return NULL;
}

static struct error *parse_metrics(struct options *options, const char *value)
{
	if (!*value)
		return option_error("--metrics: the file's name is empty: give one");
	options->metrics = value;
	return NULL;
}

static struct error *parse_ready_fd(struct options *options, const char *value)
{
	long fd;

	if (!quantity_parse_count(value, INT_MAX, &fd) || fd == STDERR_FILENO)
		return option_error(
		    "--ready-fd: '%s' is not a descriptor that can be closed: give a "
		    "number such as 3",
		    value);
	options->ready_fd = (int)fd;
	return NULL;
}

static struct error *parse_seed(struct options *options, const char *value)
{
	long seed;

	if (!quantity_parse_count(value, UINT32_MAX, &seed))
		return option_error("--seed: '%s' is not a number from 1 to 4294967295", value);
	options->seed = (uint32_t)seed;
	return NULL;
}

static struct error *parse_output(struct options *options, const char *value)
{
	if (!*value)
		return option_error(
		    "--output: the file's name is empty: give one, or - for stdout");
	options->output = value;
	return NULL;
}

static struct error *parse_serve(struct options *options, const char *value)
{
	long port = 0;

	if (strcmp(value, "0") != 0 && !quantity_parse_count(value, UINT16_MAX, &port))
		return option_error("--serve: '%s' is not a port: give a number such as 8080, or 0 "
		                    "for any free one",
		                    value);
	options->serves = true;
	options->serve_port = (uint16_t)port;
	return NULL;
}

static struct error *parse_title(struct options *options, const char *value)
{
	options->title = value;
	return NULL;
}

static struct error *parse_format(struct options *options, const char *value)
{
	const struct writer *writer = writer_by_name(value);

	if (!writer)
		return option_error("--format: '%s' is unknown: give " WRITER_NAMES, value);
	options->writer = writer;
	return NULL;
}

static struct error *compile(const char *option, const char *value, regex_t *ret)
{
	char why[128];
	const int result = regcomp(ret, value, REG_EXTENDED | REG_NOSUB);

	if (!result)
		return NULL;
	regerror(result, ret, why, sizeof(why));
	return option_error("--%s: '%s' is not a regular expression: %s", option, value, why);
}

static struct error *parse_regex(struct options *options, enum selection_regex which,
                                 const char *name, const char *value)
{
	regex_t regex;
	struct error *error = compile(name, value, &regex);

	if (error)
		return error;
	if (options->has_regex[which])
		regfree(&options->regexes[which]);
	options->regexes[which] = regex;
	options->has_regex[which] = true;
	return NULL;
}

static struct error *parse_thread(struct options *options, const char *value)
{
	return parse_regex(options, SELECTION_THREAD, "thread", value);
}

static struct error *parse_syscall(struct options *options, const char *value)
{
	return parse_regex(options, SELECTION_SYSCALL, "syscall", value);
}

static struct error *parse_focus(struct options *options, const char *value)
{
	return parse_regex(options, SELECTION_FOCUS, "focus", value);
}

static struct error *parse_ignore(struct options *options, const char *value)
{
	return parse_regex(options, SELECTION_IGNORE, "ignore", value);
}

// Labels of formats that are no labels of the sample itself: other options look at these.
static struct error *check_label(const char *option, const char *key, size_t length)
{
	static const struct {
		const char *key, *instead;
	} others[] = {
	    {"thread", "--threads or --thread"},
	    {"state", "--state"},
	    {"syscall", "--syscalls or --syscall"},
	    {"process", "--children"},
	};

	if (length == 0)
		return option_error("--%s: the label's key is empty: give one", option);
	for (size_t i = 0; i < array_size(others); i++)
		if (strlen(others[i].key) == length && strncmp(others[i].key, key, length) == 0)
			return option_error("--%s: '%s' has options of its own: give %s", option,
			                    others[i].key, others[i].instead);
	return NULL;
}

static struct error *parse_label_filter(struct options *options, const char *value)
{
	const char *equals = strchr(value, '=');
	regex_t regex;

	if (!equals)
		return option_error("--label-filter: '%s' is not KEY=REGEX, such as request=^r-1$",
		                    value);
	struct error *error = check_label("label-filter", value, (size_t)(equals - value));
	if (!error)
		error = compile("label-filter", equals + 1, &regex);
	if (error)
		return error;
	*array_push(options->label_filters, options->n_label_filters,
	            options->label_filters_capacity) = (struct label_filter){
	    .key = memory_strndup(value, (size_t)(equals - value)),
	    .regex = regex,
	};
	return NULL;
}

static struct error *parse_label_frame(struct options *options, const char *value)
{
	struct error *error = check_label("label-frame", value, strlen(value));

	if (!error)
		add_string(&options->label_frames, &options->n_label_frames,
		           &options->label_frames_capacity, value);
	return error;
}

static struct error *parse_state(struct options *options, const char *value)
{
	unsigned int states = 0;

	for (const char *name = value;; name++) {
		const size_t length = strcspn(name, ",");
		const enum thread_state state = thread_state_named(name, length);
		if (state == N_THREAD_STATES)
			return option_error("--state: '%s' is not a list of states: give some of "
			                    "running,runnable,sleeping,disk,stopped",
			                    value);
		states |= 1u << state;
		name += length;
		if (*name == '\0')
			break;
	}
	options->states = states;
	return NULL;
}

// Sets both: what follows is not read.
static struct error *parse_help_all(struct options *options, const char *value)
{
	(void)value;
	options->help = options->help_all = true;
	return NULL;
}

// clang-format off
// A heading has the verbs of the rows below it; a row may have others, as in `.verbs = FOR_SAMPLE`.
#define HEADING(text, bits) {.help = (text), .verbs = (bits)}
#define FLAG(letter, name, field, value, text, ...)                                                \
	{.short_name = (letter), .long_name = (name), .help = (text),                              \
	 .flag_offset = offsetof(struct options, field), .flag_value = (value), ##__VA_ARGS__}
#define VALUE(letter, name, arg, function, text, ...)                                              \
	{.short_name = (letter), .long_name = (name), .argument = (arg), .help = (text),           \
	 .parse = (function), ##__VA_ARGS__}
#define ACTION(name, function, text)                                                               \
	{.long_name = (name), .help = (text), .parse = (function)}

static const struct option_row rows[] = {
	HEADING("What and how long:", FOR_SAMPLE),
	VALUE('p', "pid", "PID", parse_pid,
	      "attach to this process, or to several: 12,34",
	      .verbs = FOR_SAMPLE | FOR_NOW | FOR_EXPLAIN, .common = FOR_SAMPLE),
	VALUE('d', "duration", "TIME", parse_duration,
	      "stop after TIME: 30, 1.5s, 500ms, 2m or 1h30m;\n"
	      "default: when the process exits, or at Ctrl-C",
	      .verbs = FOR_SAMPLE | FOR_TOP | FOR_EXPLAIN, .common = FOR_SAMPLE | FOR_TOP | FOR_EXPLAIN),
	FLAG('c', "children", children, true,
	     "sample its child processes and their children as well",
	      .verbs = FOR_SAMPLE | FOR_NOW | FOR_EXPLAIN,
	      .common = FOR_SAMPLE | FOR_NOW | FOR_EXPLAIN),
	VALUE('F', "frequency", "HZ", parse_frequency,
	      "samples per second of each thread, 1 to 10000;\n"
	      "default 99 (agent: 19)",
	      .verbs = FOR_SAMPLE | FOR_TOP | FOR_AGENT | FOR_EXPLAIN),
	FLAG('k', "kernel", kernel, true,
	     "show the kernel functions in which threads wait;\n"
	     "needs root (CAP_SYS_ADMIN)",
	      .verbs = FOR_SAMPLE | FOR_NOW | FOR_AGENT),
	FLAG(0, "locks", locks, true,
	     "show which mutex a thread waits for and who holds it\n"
	     "(top and dump always do)"),
	FLAG(0, "blame", blame, true,
	     "below a stack that waits for a thread or process, show\n"
	     "what that one does meanwhile; includes --locks",
	     .verbs = FOR_SAMPLE | FOR_REPORT, .common = FOR_REPORT),
	VALUE(0, "runtimes", "LIST", parse_runtimes,
	      "languages whose own functions are shown: auto (all,\n"
	      "the default), none, or some of go,java,python,v8",
	      .verbs = FOR_SAMPLE | FOR_NOW | FOR_AGENT),
	VALUE(0, "frames", "WHICH", parse_frames,
	      "for Python programs: auto (hide the interpreter's own\n"
	      "frames, the default), all, python or native",
	      .verbs = FOR_SAMPLE | FOR_NOW | FOR_AGENT),
	FLAG(0, "system-goroutines", system_tasks, true,
	     "show the Go runtime's own goroutines as well",
	      .verbs = FOR_SAMPLE | FOR_NOW | FOR_AGENT),
	FLAG(0, "no-creators", no_creators, true,
	     "do not show who created a goroutine as its root frame",
	      .verbs = FOR_SAMPLE | FOR_NOW),
	VALUE(0, "max-depth", "N", parse_max_depth,
	      "keep up to N frames of a stack, 1 to 65536;\n"
	      "default 8192 (1024 if the stack is far deeper)",
	      .verbs = FOR_SAMPLE | FOR_NOW | FOR_AGENT),
	FLAG(0, "stop-all", stop_all, true,
	     "stop all running threads at the same moment: a\n"
	     "consistent picture, but longer pauses",
	      .verbs = FOR_SAMPLE | FOR_NOW),
	VALUE(0, "max-overhead", "PERCENT", parse_max_overhead,
	      "sample less often if pauses, or the profiler's CPU\n"
	      "use, would exceed PERCENT of the time; default 5;\n"
	      "0: no limit",
	      .verbs = FOR_SAMPLE | FOR_TOP | FOR_AGENT),
	HEADING("Which samples:", FOR_SAMPLE | FOR_READING | FOR_TOP | FOR_EXPLAIN),
	FLAG(0, "on-cpu", on_cpu, true,
	     "only threads that run: that are on a CPU"),
	FLAG(0, "off-cpu", off_cpu, true,
	     "only threads that wait: for a lock, disk, CPU, ..."),
	VALUE(0, "thread", "REGEX", parse_thread,
	      "only threads whose name matches (extended regex)",
	      .verbs = FOR_SAMPLE | FOR_READING | FOR_NOW | FOR_EXPLAIN,
	      .common = FOR_REPORT | FOR_VIEW | FOR_DUMP),
	VALUE(0, "state", "LIST", parse_state,
	      "only these states: some of\n"
	      "running,runnable,sleeping,disk,stopped"),
	VALUE(0, "syscall", "REGEX", parse_syscall,
	      "only threads waiting in a matching system call"),
	VALUE(0, "focus", "REGEX", parse_focus,
	      "only stacks with a matching function"),
	VALUE(0, "ignore", "REGEX", parse_ignore,
	      "only stacks without a matching function"),
	VALUE(0, "label-filter", "KEY=REGEX", parse_label_filter,
	      "only samples with this label (a goroutine's, task,\n"
	      "gil, ...) and a matching value; may be repeated",
	      .verbs = FOR_SAMPLE | FOR_READING | FOR_NOW),
	VALUE(0, "waits", "TIME", parse_waits,
	      "only waits of TIME or longer, each as one sample",
	      .verbs = FOR_SAMPLE | FOR_REPORT, .common = FOR_REPORT),
	VALUE(0, "max-threads", "N", parse_max_threads,
	      "with --waits: only the N threads with the longest\n"
	      "waits; default 1000",
	      .verbs = FOR_SAMPLE | FOR_REPORT),
	VALUE(0, "from", "WHEN", parse_from,
	      "only from WHEN on: a time since the start (5s, 1.5m)\n"
	      "or of the day (14:03:07, 2026-11-20T14:03:07Z)",
	      .verbs = FOR_SAMPLE | FOR_READING | FOR_EXPLAIN,
	      .common = FOR_REPORT | FOR_VIEW | FOR_EXPLAIN),
	VALUE(0, "to", "WHEN", parse_to,
	      "only until WHEN",
	      .verbs = FOR_SAMPLE | FOR_READING | FOR_EXPLAIN,
	      .common = FOR_REPORT | FOR_VIEW | FOR_EXPLAIN),
	HEADING("Output:", FOR_SAMPLE | FOR_REPORT | FOR_DIFF),
	VALUE('o', "output", "FILE", parse_output,
	      "file to write: .html, .pb.gz, .wprof, ...; -: stdout;\n"
	      "default: tables on a terminal (a run also writes a\n"
	      "page, profiler.PID.html); folded stacks in a pipe",
	      .verbs = FOR_SAMPLE | FOR_REPORT | FOR_DIFF | FOR_DUMP | FOR_TOP | FOR_AGENT |
	               FOR_EXPLAIN,
	      .common = FOR_SAMPLE | FOR_REPORT | FOR_DIFF),
	VALUE('f', "format", "FORMAT", parse_format,
	      "folded, pprof, html, record; or a timeline:\n"
	      "speedscope, firefox, chrome, sentry; default: by the\n"
	      "ending of FILE: .pb.gz .pb .pprof (pprof), .html,\n"
	      ".wprof (record), .speedscope.json, .firefox.json,\n"
	      ".trace.json (chrome), .sentry.json, .folded, .txt;\n"
	      "without an ending: folded",
	      .common = FOR_REPORT),
	VALUE(0, "title", "TEXT", parse_title,
	      "title of a page (html); default: process name and pid",
	      .verbs = FOR_SAMPLE | FOR_REPORT | FOR_DIFF | FOR_VIEW),
	FLAG('t', "threads", threads, true,
	     "make the thread's name the root frame of its stacks",
	      .common = FOR_SAMPLE | FOR_REPORT),
	VALUE(0, "label-frame", "KEY", parse_label_frame,
	      "make this label, such as request=r-1, the root frame\n"
	      "of stacks that have it; may be repeated",
	      .verbs = FOR_SAMPLE | FOR_READING),
	FLAG(0, "goroutine-ids", task_ids, true,
	     "in pprof, keep each goroutine apart, with its id;\n"
	     "default: add up goroutines with equal stacks"),
	FLAG(0, "syscalls", syscalls, true,
	     "show the system call a thread waits in, and its file,\n"
	     "socket or pipe, as a frame (pprof: always as labels)"),
	FLAG(0, "lines", lines, true,
	     "show file:line in each frame (folded)"),
	FLAG(0, "inlines", inlines, true,
	     "show inlined calls as frames of their own (default)",
	      .verbs = FOR_SAMPLE | FOR_READING | FOR_NOW | FOR_AGENT | FOR_EXPLAIN),
	FLAG(0, "no-inlines", inlines, false,
	     "show only functions that are in the machine code",
	      .verbs = FOR_SAMPLE | FOR_READING | FOR_NOW | FOR_AGENT | FOR_EXPLAIN),
	FLAG(0, "normalize", normalize, true,
	     "scale A to the total of B, as if both ran equally long",
	      .verbs = FOR_DIFF, .common = FOR_DIFF),
	VALUE(0, "serve", "PORT", parse_serve,
	      "show the page to browsers of this machine by HTTP on\n"
	      "PORT, until Ctrl-C; for ssh -L; 0: any free port",
	      .verbs = FOR_VIEW, .common = FOR_VIEW),
	HEADING("Debug information:",
	        FOR_SAMPLE | FOR_READING | FOR_NOW | FOR_AGENT | FOR_EXPLAIN),
	VALUE(0, "debug-dir", "DIR", parse_debug_dir,
	      "look for debug files in DIR first; may be repeated"),
	FLAG(0, "debuginfod", debuginfod, true,
	     "download missing debug files from the servers in\n"
	     "$DEBUGINFOD_URLS"),
	HEADING("Recordings (-f record):", FOR_SAMPLE),
	VALUE(0, "max-size", "SIZE", parse_max_size,
	      "stop recording samples at SIZE, such as 20M, and only\n"
	      "count the rest; at least 1M"),
	FLAG(0, "no-symbols", symbols, false,
	     "look up function names later, in profiler report"),
	HEADING("Windows and flight recorder:", FOR_SAMPLE),
	VALUE(0, "every", "TIME", parse_every,
	      "write a profile every TIME, such as 60s, into the\n"
	      "directory given with -o"),
	VALUE(0, "ring", "TIME", parse_ring,
	      "keep only the last TIME in memory; SIGUSR1 writes it\n"
	      "to a new file in the directory given with -o"),
	VALUE(0, "ring-size", "SIZE", parse_ring_size,
	      "memory for --ring; default 64M"),
	VALUE(0, "dump-when", "WHEN", parse_dump_when,
	      "write it also when blocked>TIME, cpu>PERCENT,\n"
	      "cpu<PERCENT or death; separate several with commas"),
	VALUE(0, "keep", "N", parse_keep,
	      "keep only the last N of these files"),
	VALUE(0, "exec", "COMMAND", parse_exec,
	      "run this shell command for each of these files; the\n"
	      "file's name is its last argument"),
	HEADING("Sending to a server:", FOR_SAMPLE | FOR_PUSH | FOR_AGENT),
	VALUE(0, "push", "URL", push_parse_url,
	      "send a profile every 15s, or --every, to this server\n"
	      "(profiler push --help says which); profiles not yet\n"
	      "sent wait in the directory given with -o",
	      .verbs = FOR_SAMPLE | FOR_AGENT),
	VALUE(0, "service", "NAME", push_parse_service,
	      "service name under which the server files the profile",
	      .common = FOR_PUSH | FOR_AGENT),
	VALUE(0, "label", "KEY=VALUE", push_parse_label,
	      "add a label; may be repeated",
	      .common = FOR_PUSH | FOR_AGENT),
	VALUE(0, "push-labels", "LIST", push_parse_keys,
	      "sample labels to send: some of\n"
	      "state,kind,syscall,thread; default state"),
	VALUE(0, "push-header-file", "FILE", push_parse_header_file,
	      "file with headers such as 'Authorization: Bearer\n"
	      "TOKEN'; only you may be able to read it",
	      .common = FOR_PUSH),
	VALUE(0, "push-ca", "FILE", push_parse_ca,
	      "trust these certificates instead of the system's"),
	VALUE(0, "spool-size", "SIZE", push_parse_spool_size,
	      "disk space for profiles not yet sent; default 64M;\n"
	      "beyond that the oldest are deleted"),
	HEADING("For scripts:", FOR_SAMPLE | FOR_AGENT),
	VALUE(0, "metrics", "FILE", parse_metrics,
	      "write statistics of the run as JSON, at the end and\n"
	      "after each window (agent: every 5 seconds)",
	      .verbs = FOR_SAMPLE | FOR_AGENT),
	VALUE(0, "ready-fd", "FD", parse_ready_fd,
	      "after the first sample, write a newline to this file\n"
	      "descriptor and close it"),
	HEADING("Other:",
	        FOR_SAMPLE | FOR_READING | FOR_NOW | FOR_PUSH | FOR_AGENT | FOR_EXPLAIN),
	FLAG('q', "quiet", quiet, true,
	     "print no status line and no summary"),
	FLAG('v', "verbose", verbose, true,
	     "print more in the summary",
	      .verbs = FOR_SAMPLE),
	FLAG('h', "help", help, true,
	     "print the most used options and exit"),
	ACTION("help-all", parse_help_all,
	     "print all options and exit"),
	FLAG('V', "version", version, true,
	     "print the version and exit"),
	HEADING("Debugging the profiler:", FOR_SAMPLE),
	VALUE(0, "seed", "N", parse_seed,
	      "seed for the random sample times, 1 to 4294967295;\n"
	      "default: random"),
};
// clang-format on

const struct option_table option_rows = {.rows = rows, .n_rows = array_size(rows)};
