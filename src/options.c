#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "error.h"
#include "memory.h"
#include "profile.h"
#include "writer.h"

enum {
	DEFAULT_MAX_DEPTH = 1024,
	MAX_MAX_DEPTH = 65536,
	DEFAULT_MAX_OVERHEAD_PERCENT = 5,
	// Not 100: no lockstep with what the target does 100 times a second.
	DEFAULT_FREQUENCY_HZ = 99,
	MAX_FREQUENCY_HZ = 10000,
	MAX_DURATION_S = 1000000000, // so that now + duration stays far from INT64_MAX ns
	LONG_BASE = 256, // getopt_long returns LONG_BASE + row for a long option, else the letter
	HELP_COLUMN = 26,
};

// The formats' names for messages; tests hold it against the writers themselves.
#define FORMATS "folded or pprof"

static struct error *usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

static struct error *usage_error(const char *format, ...)
{
	_cleanup_free_ char *message = NULL;
	va_list args;

	va_start(args, format);
	message = memory_vprintf(format, args);
	va_end(args);
	return error_create(EXIT_STATUS_USAGE, "%s (see profiler --help)", message);
}

// A plain decimal number such as 12 or 0.5 at the start of `text`: no sign, no exponent, no hex.
// Returns what follows it, NULL where there is none.
static const char *parse_decimal(const char *text, double *ret)
{
	size_t whole = strspn(text, "0123456789");
	size_t length = whole;
	size_t fraction = 0;

	if (text[length] == '.') {
		fraction = strspn(text + length + 1, "0123456789");
		length += 1 + fraction;
	}
	if (whole + fraction == 0)
		return NULL;

	_cleanup_free_ char *number = memory_strndup(text, length);
	*ret = strtod(number, NULL);
	return text + length;
}

bool options_parse_time(const char *text, int64_t *ret_ns)
{
	static const struct {
		const char *suffix;
		double ns;
	} units[] = {
	    {"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"m", 60e9}, {"h", 3600e9},
	};
	double value;
	const char *suffix = parse_decimal(text, &value);

	if (!suffix)
		return false;
	for (size_t i = 0; i < array_size(units); i++) {
		if (strcmp(suffix, units[i].suffix) != 0)
			continue;
		double ns = value * units[i].ns;
		if (ns < 1 || ns > (double)MAX_DURATION_S * NS_PER_SECOND)
			return false;
		*ret_ns = (int64_t)ns;
		return true;
	}
	return false;
}

// A whole number from 1 to max, digits only.
static bool parse_count(const char *text, long max, long *ret)
{
	long value;

	if (!*text || text[strspn(text, "0123456789")] != '\0')
		return false;
	errno = 0;
	value = strtol(text, NULL, 10);
	if (errno || value < 1 || value > max)
		return false;
	*ret = value;
	return true;
}

static struct error *parse_pid(struct options *options, const char *value)
{
	long pid;

	if (!parse_count(value, INT_MAX, &pid))
		return usage_error("--pid: '%s' is not a process id: give a number such as 1234",
		                   value);
	options->pid = (int)pid;
	return NULL;
}

static struct error *parse_duration(struct options *options, const char *value)
{
	if (!options_parse_time(value, &options->duration_ns))
		return usage_error("--duration: '%s' is not a time above 0: give one such as 30, "
		                   "1.5s, 500ms, 2m or 1h",
		                   value);
	return NULL;
}

static struct error *parse_frequency(struct options *options, const char *value)
{
	double hz;
	const char *rest = parse_decimal(value, &hz);

	if (!rest || *rest || hz < 1 || hz > MAX_FREQUENCY_HZ)
		return usage_error("--frequency: '%s' is not a number from 1 to %d", value,
		                   MAX_FREQUENCY_HZ);
	options->frequency_hz = hz;
	return NULL;
}

static struct error *parse_max_depth(struct options *options, const char *value)
{
	long depth;

	if (!parse_count(value, MAX_MAX_DEPTH, &depth))
		return usage_error("--max-depth: '%s' is not a whole number from 1 to %d", value,
		                   MAX_MAX_DEPTH);
	options->max_depth = (uint32_t)depth;
	return NULL;
}

static struct error *parse_max_overhead(struct options *options, const char *value)
{
	double percent;
	const char *rest = parse_decimal(value, &percent);

	if (rest && *rest == '%')
		rest++;
	if (!rest || *rest || percent < 0 || percent > 100)
		return usage_error(
		    "--max-overhead: '%s' is not a percentage from 0 (no limit) to 100", value);
	options->max_overhead_percent = percent;
	return NULL;
}

static struct error *parse_output(struct options *options, const char *value)
{
	if (!*value)
		return usage_error("--output: the file's name is empty: give one, or - for stdout");
	options->output = value;
	return NULL;
}

static struct error *parse_format(struct options *options, const char *value)
{
	const struct writer *writer = writer_by_name(value);

	if (!writer)
		return usage_error("--format: '%s' is unknown: give " FORMATS, value);
	options->writer = writer;
	return NULL;
}

static struct error *parse_regex(struct options *options, enum selection_regex which,
                                 const char *name, const char *value)
{
	regex_t regex;
	char why[128];
	int result = regcomp(&regex, value, REG_EXTENDED | REG_NOSUB);

	if (result) {
		regerror(result, &regex, why, sizeof(why));
		return usage_error("--%s: '%s' is not a regular expression: %s", name, value, why);
	}
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

// The state of that name, `length` bytes; N_THREAD_STATES: none.
static enum thread_state find_state(const char *name, size_t length)
{
	enum thread_state state = 0;

	while (state < N_THREAD_STATES && (strlen(thread_state_name(state)) != length ||
	                                   strncmp(thread_state_name(state), name, length) != 0))
		state++;
	return state;
}

static struct error *parse_state(struct options *options, const char *value)
{
	unsigned int states = 0;

	for (const char *name = value;; name++) {
		const size_t length = strcspn(name, ",");
		const enum thread_state state = find_state(name, length);
		if (state == N_THREAD_STATES)
			return usage_error("--state: '%s' is no list of states: give some of "
			                   "running,sleeping,disk,stopped",
			                   value);
		states |= 1u << state;
		name += length;
		if (*name == '\0')
			break;
	}
	options->states = states;
	return NULL;
}

// A row of the table of options: how it is written, what it does and what --help says of it.
struct option_row {
	char short_name;       // 0: none
	const char *long_name; // NULL: a heading of the help, in `help`
	const char *argument;  // its name in the help; NULL: takes none
	const char *help;      // lines, without a newline at the end
	size_t flag_offset;    // without `parse`: the bool in struct options to set
	bool flag_value;       // to what
	struct error *(*parse)(struct options *options, const char *value);
};

// clang-format off
#define HEADING(text) {.help = (text)}
#define FLAG(letter, name, field, value, text)                                                     \
	{.short_name = (letter), .long_name = (name), .help = (text),                              \
	 .flag_offset = offsetof(struct options, field), .flag_value = (value)}
#define VALUE(letter, name, arg, function, text)                                                   \
	{.short_name = (letter), .long_name = (name), .argument = (arg), .help = (text),           \
	 .parse = (function)}

static const struct option_row rows[] = {
	HEADING("What and how long:"),
	VALUE('p', "pid", "PID", parse_pid,
	      "attach to this process, all of its threads"),
	FLAG('c', "children", children, true,
	     "its child processes too, and theirs"),
	VALUE('d', "duration", "TIME", parse_duration,
	      "stop after 30, 1.5s, 500ms, 2m or 1h; default: when\n"
	      "the target ends, or at Ctrl-C"),
	VALUE('F', "frequency", "HZ", parse_frequency,
	      "samples a second of each thread, 1 to 10000;\n"
	      "default 99"),
	FLAG('k', "kernel", kernel, true,
	     "the kernel's functions, too, of threads that wait;\n"
	     "needs root (CAP_SYS_ADMIN)"),
	VALUE(0, "max-depth", "N", parse_max_depth,
	      "frames of a stack, 1 to 65536; default 1024; a deeper\n"
	      "one is marked [truncated: ...]"),
	FLAG(0, "stop-all", stop_all, true,
	     "hold all running threads at once: one consistent\n"
	     "picture, at a higher price for the target"),
	VALUE(0, "max-overhead", "PERCENT", parse_max_overhead,
	      "sample less often when holding threads, or the\n"
	      "profiler's CPU, would take more than this share of\n"
	      "the time; default 5; 0: no limit"),
	HEADING("Which samples:"),
	FLAG(0, "on-cpu", on_cpu, true,
	     "only of threads on a CPU or ready to run"),
	FLAG(0, "off-cpu", off_cpu, true,
	     "only of threads that wait: lock, disk, timer, ..."),
	VALUE(0, "thread", "REGEX", parse_thread,
	      "only of threads whose name matches (extended regex)"),
	VALUE(0, "state", "LIST", parse_state,
	      "only in these states: running,sleeping,disk,stopped"),
	VALUE(0, "syscall", "REGEX", parse_syscall,
	      "only of threads that wait in such a system call"),
	VALUE(0, "focus", "REGEX", parse_focus,
	      "only with a function, anywhere in the stack, whose\n"
	      "name matches"),
	VALUE(0, "ignore", "REGEX", parse_ignore,
	      "only without such a function"),
	HEADING("Output:"),
	VALUE('o', "output", "FILE", parse_output,
	      "where the profile goes, - is stdout; default: stdout\n"
	      "with -p, else profiler.PID.folded or .pb.gz"),
	VALUE('f', "format", "FORMAT", parse_format,
	      FORMATS "; default: what FILE's name says\n"
	      "(.pb.gz, .pb, .pprof: pprof), else folded"),
	FLAG('t', "threads", threads, true,
	     "the thread's name as root frame"),
	FLAG(0, "syscalls", syscalls, true,
	     "the system call that a thread waits in, and for which\n"
	     "file, socket or pipe, as a frame (always in pprof,\n"
	     "as labels)"),
	FLAG(0, "lines", lines, true,
	     "file:line in the frames (folded)"),
	FLAG(0, "inlines", inlines, true,
	     "inlined calls as frames of their own (the default)"),
	FLAG(0, "no-inlines", inlines, false,
	     "only the functions that stand in the machine code"),
	HEADING("Other:"),
	FLAG('q', "quiet", quiet, true,
	     "no status line and no summary"),
	FLAG('v', "verbose", verbose, true,
	     "say more in the summary"),
	FLAG('h', "help", help, true,
	     "print this help and leave"),
	FLAG('V', "version", version, true,
	     "print the version and leave"),
	HEADING("Debugging:"),
	FLAG(0, "check-unwinding", check_unwinding, true,
	     "compare each stack with what libdw makes of it"),
};
// clang-format on

enum { N_ROWS = array_size(rows) };

static void print_row(FILE *stream, const struct option_row *row)
{
	const char *line = row->help;
	int column;

	if (!row->long_name) {
		fprintf(stream, "\n%s\n", row->help);
		return;
	}
	if (row->short_name)
		column = fprintf(stream, "  -%c, ", row->short_name);
	else
		column = fprintf(stream, "      ");
	column += fprintf(stream, "--%s%s%s", row->long_name, row->argument ? "=" : "",
	                  row->argument ?: "");
	while (line) {
		int length = (int)strcspn(line, "\n");

		fprintf(stream, "%*s%.*s\n", HELP_COLUMN - column, "", length, line);
		column = 0;
		line = line[length] ? line + length + 1 : NULL;
	}
}

char *options_help(void)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return memory_strdup("");
	fputs("Usage: profiler [OPTION...] -p PID\n"
	      "       profiler [OPTION...] [--] COMMAND [ARG...]\n"
	      "Shows where every thread of a process spends its time, running or blocked.\n",
	      stream);
	for (size_t i = 0; i < N_ROWS; i++)
		print_row(stream, &rows[i]);
	fputs("\nExit status: the command's own; with -p 0; else 1 (target), 2 (command line),\n"
	      "3 (output), 126 or 127 (the command cannot be run). More in profiler(1).\n",
	      stream);
	fclose(stream);
	return text;
}

// The row of what getopt_long returned: a letter, or LONG_BASE + row. NULL: none.
static const struct option_row *find_row(int code)
{
	if (code >= LONG_BASE && code < LONG_BASE + N_ROWS)
		return &rows[code - LONG_BASE];
	for (size_t i = 0; i < N_ROWS; i++)
		if (code && rows[i].short_name == code)
			return &rows[i];
	return NULL;
}

// The table in getopt's words.
static void fill_getopt(char letters[2 * N_ROWS + 3], struct option longs[N_ROWS + 1])
{
	size_t n = 0;

	// +: stop at the command, whose options are its own; ':': tell a missing argument apart.
	*letters++ = '+';
	*letters++ = ':';
	for (int i = 0; i < N_ROWS; i++) {
		const struct option_row *row = &rows[i];

		if (!row->long_name)
			continue;
		longs[n++] = (struct option){
		    .name = row->long_name,
		    .has_arg = row->argument ? required_argument : no_argument,
		    .val = LONG_BASE + i,
		};
		if (!row->short_name)
			continue;
		*letters++ = row->short_name;
		if (row->argument)
			*letters++ = ':';
	}
	*letters = '\0';
	longs[n] = (struct option){0};
}

// getopt_long said '?': which mistake was it?
static struct error *explain_unknown(int code, const char *word)
{
	const struct option_row *row = find_row(code);

	if (row)
		return usage_error("--%s takes no value: leave '%s' out", row->long_name,
		                   strchr(word, '=') ?: word);
	if (code)
		return usage_error("unknown option '-%c'", code);

	_cleanup_free_ char *candidates = memory_strdup("");
	size_t length = strcspn(word, "=");
	size_t n = 0;

	for (size_t i = 0; i < N_ROWS && length > 2; i++) {
		const char *name = rows[i].long_name;

		if (!name || strncmp(name, word + 2, length - 2) != 0)
			continue;
		char *longer = memory_printf("%s%s--%s", candidates, n++ ? " or " : "", name);
		free(candidates);
		candidates = longer;
	}
	if (n)
		return usage_error("option '%s' is ambiguous: %s", word, candidates);
	return usage_error("unknown option '%s'", word);
}

static struct error *apply(struct options *options, const struct option_row *row)
{
	if (row->parse)
		return row->parse(options, optarg);
	*(bool *)((char *)options + row->flag_offset) = row->flag_value;
	return NULL;
}

static struct error *parse_all(int argc, char **argv, struct options *options)
{
	char letters[2 * N_ROWS + 3];
	struct option longs[N_ROWS + 1];
	int code;

	fill_getopt(letters, longs);
	optind = 0; // glibc: start anew
	while ((code = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		const struct option_row *row = find_row(code == ':' ? optopt : code);
		struct error *error;

		if (code == '?' || !row)
			return explain_unknown(optopt, argv[optind - 1]);
		if (code == ':')
			return usage_error("--%s needs a value: --%s=%s", row->long_name,
			                   row->long_name, row->argument);
		error = apply(options, row);
		if (error || options->help || options->version)
			return error;
	}
	if (optind < argc)
		options->command = argv + optind;
	return NULL;
}

enum { ALL_STATES = (1 << N_THREAD_STATES) - 1, NO_STATE = 1 << N_THREAD_STATES };

struct selection options_selection(const struct options *options)
{
	struct selection selection = {.states = options->states ? options->states : ALL_STATES};

	if (options->on_cpu)
		selection.states &= 1u << THREAD_RUNNING;
	if (options->off_cpu)
		selection.states &= ~(1u << THREAD_RUNNING);
	if (selection.states == 0)
		selection.states = NO_STATE;
	for (size_t i = 0; i < N_SELECTION_REGEXES; i++)
		selection.regexes[i] = options->has_regex[i] ? &options->regexes[i] : NULL;
	return selection;
}

// What no single option shows: is the whole consistent?
static struct error *check(const struct options *options)
{
	if (options->pid && options->command)
		return usage_error("-p %d and a command ('%s') are given: leave one of them out",
		                   options->pid, options->command[0]);
	if (!options->pid && !options->command)
		return usage_error("nothing to profile: give a process (-p PID) or a command");
	if (options->on_cpu && options->off_cpu)
		return usage_error(
		    "--on-cpu and --off-cpu leave nothing: give one, or none for all");
	if (options_selection(options).states == NO_STATE)
		return usage_error("--state and --%s-cpu leave nothing: leave one of them out",
		                   options->on_cpu ? "on" : "off");
	return NULL;
}

struct error *options_parse(int argc, char **argv, struct options *ret)
{
	struct options options = {
	    .frequency_hz = DEFAULT_FREQUENCY_HZ,
	    .max_depth = DEFAULT_MAX_DEPTH,
	    .max_overhead_percent = DEFAULT_MAX_OVERHEAD_PERCENT,
	    .inlines = true,
	};
	struct error *error = parse_all(argc, argv, &options);

	if (!error && (options.help || options.version)) {
		*ret = (struct options){.help = options.help, .version = options.version};
		options_deinit(&options);
		return NULL;
	}
	if (!error)
		error = check(&options);
	if (error) {
		options_deinit(&options);
		return error;
	}
	if (!options.writer && options.output)
		options.writer = writer_by_file_name(options.output);
	if (!options.writer)
		options.writer = &writer_folded;
	*ret = options;
	return NULL;
}

void options_deinit(struct options *options)
{
	for (size_t i = 0; i < N_SELECTION_REGEXES; i++)
		if (options->has_regex[i])
			regfree(&options->regexes[i]);
	memset(options->has_regex, 0, sizeof(options->has_regex));
}
