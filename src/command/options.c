// SPDX-License-Identifier: MIT
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "debug_server.h"
#include "error.h"
#include "memory.h"
#include "option_rows.h"
#include "option_table.h"
#include "profile.h"
#include "quantity.h"
#include "verb.h"
#include "writer.h"

enum {
	DEFAULT_MAX_DEPTH = 8192, // compilers go beyond 4,000 in nested expressions
	// A runaway recursion looks the same in fewer frames, and a thread is held for their copy.
	DEFAULT_HUGE_DEPTH = 1024,
	DEFAULT_MAX_OVERHEAD_PERCENT = 5,
	DEFAULT_FREQUENCY_HZ = 99,
	AGENT_FREQUENCY_HZ = 19,
};

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

// Checks that the options of a command line go together.
static struct error *check(const struct options *options)
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

char *options_help(const struct options *options)
{
	return verb_help(options->verb, &option_rows, options->help_all);
}

// The next word if it may be a verb, or else NULL: after "--" it is a command.
static const char *next_word(int argc, char **argv)
{
	const bool after_dashes = optind > 0 && strcmp(argv[optind - 1], "--") == 0;

	return optind < argc && !after_dashes ? argv[optind] : NULL;
}

static bool is_number(const char *word)
{
	return word && word[0] && word[strspn(word, "0123456789")] == '\0';
}

static bool is_word(const char *word, const char *expected)
{
	return word && strcmp(word, expected) == 0;
}

// The verbs that take it, as "profiler diff and dump"; owned by the caller.
static char *takers(unsigned int bits)
{
	char *text = memory_strdup("profiler");
	size_t n = 0;

	for (size_t i = 0; i < N_VERBS; i++) {
		if (!(bits & 1u << i) || !verbs[i].name)
			continue;
		char *longer = memory_printf("%s %s%s", text, n++ ? "and " : "", verbs[i].name);
		free(text);
		text = longer;
	}
	return text;
}

static struct error *refuse(const struct verb *verb, const struct option_row *row)
{
	const unsigned int bits = option_row_verbs(row);
	_cleanup_free_ char *others = takers(bits);

	if (!(bits & FOR_SAMPLE))
		return option_error("--%s is for %s", row->long_name, others);
	if (!(bits & FOR_READING) && FOR_READING & 1u << verb->id)
		return option_error("%s: --%s only works while sampling: leave it out", verb->name,
		                    row->long_name);
	return option_error("%s does not take --%s: %s", verb->name, row->long_name,
	                    verb->instead ?: "leave it out");
}

// Every option that was given must be for the verb.
static struct error *check_use(const struct verb *verb, const struct option_use *use)
{
	for (size_t i = 0; i < use->count; i++)
		if (!(option_row_verbs(use->rows[i]) & 1u << verb->id))
			return refuse(verb, use->rows[i]);
	return NULL;
}

// What follows the verb: its options may stand before and after the other words.
static struct error *parse_verb(int argc, char **argv, struct options *options,
                                struct option_use *use)
{
	const struct verb *verb = options->verb;

	for (optind++;;) {
		struct error *error =
		    option_table_parse(&option_rows, verb->own_rows, argc, argv, options, use);
		if (error || options->help || options->version)
			return error;
		// After "--" all are words, with which getopt_long(3) would begin anew each time.
		const bool only_words = strcmp(argv[optind - 1], "--") == 0;
		if (verb->takes_command && optind < argc && only_words) {
			options->command = argv + optind;
			return verb->check(options);
		}
		do {
			if (optind >= argc)
				return verb->check(options);
			error = verb->take_word(options, argv[optind++]);
			if (error)
				return error;
		} while (only_words);
	}
}

// profiler help [VERB]
static struct error *parse_help(int argc, char **argv, struct options *options)
{
	optind++;
	options->help = true;
	if (optind >= argc)
		return NULL;
	const char *name = argv[optind];
	const struct verb *verb = verb_named(name), *similar = verb_similar(name);
	options->verb = verb ?: options->verb;
	if (verb || is_word(name, "record"))
		return NULL;
	if (similar)
		return option_error("no help for '%s': did you mean profiler help %s?", name,
		                    similar->name);
	return option_error("no help for '%s': it is not a verb of profiler", name);
}

// Options may also follow `record`, as other profilers have it, and PIDs without -p or after it: -p
// $(pidof nginx).
static struct error *parse_sampling(int argc, char **argv, struct options *options,
                                    struct option_use *use)
{
	if (is_word(next_word(argc, argv), "record")) {
		optind++;
		struct error *error =
		    option_table_parse(&option_rows, NULL, argc, argv, options, use);
		if (error || options->help || options->version)
			return error;
	}
	while (is_number(next_word(argc, argv))) {
		struct error *error = options_add_pids(options, argv[optind++], "profiler:");
		if (!error)
			error = option_table_parse(&option_rows, NULL, argc, argv, options, use);
		if (error || options->help || options->version)
			return error;
	}
	if (optind < argc)
		options->command = argv + optind;
	return NULL;
}

static struct error *parse_all(int argc, char **argv, struct options *options)
{
	struct option_use use = {.count = 0};
	struct error *error;

	optind = 0; // glibc: start anew
	error = option_table_parse(&option_rows, NULL, argc, argv, options, &use);
	if (error || options->help || options->version)
		return error;
	const char *word = next_word(argc, argv);
	if (is_word(word, "help"))
		return parse_help(argc, argv, options);
	const struct verb *verb = word ? verb_named(word) : NULL;
	if (verb)
		options->verb = verb;
	error = verb ? parse_verb(argc, argv, options, &use)
	             : parse_sampling(argc, argv, options, &use);
	if (error || options->help || options->version)
		return error;
	return check_use(options->verb, &use);
}

// The ending of a file's name, such as ".svg"; NULL: it has none.
static const char *find_ending(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *ending = strrchr(name, '.');

	if (!ending || ending == name || !isalpha((unsigned char)ending[1]))
		return NULL; // a version, a date, a hidden file
	return ending;
}

// Other profilers write other files: better no file than one that its reader does not understand.
static struct error *refuse_ending(const char *path, const char *ending)
{
	static const char *const pictures[] = {".svg", ".png", ".pdf", ".htm"};
	const int length = (int)(ending - path);

	for (size_t i = 0; i < array_size(pictures); i++)
		if (strcmp(ending, pictures[i]) == 0)
			return option_error("-o %s: there is no format %s; for a flame graph give "
			                    "-o %.*s.html",
			                    path, ending + 1, length, path);
	if (strcmp(ending, ".json") == 0)
		return option_error("-o %s: which JSON? Give -o %.*s.speedscope.json, "
		                    ".firefox.json, .trace.json or .sentry.json",
		                    path, length, path);
	return option_error("-o %s: no format has the ending %s: give .html, .pb.gz, .wprof, "
	                    ".folded or .txt, or choose a format with -f",
	                    path, ending);
}

// True if neither a file nor a format was asked for, and a person looks on.
static bool is_asked_by_person(const struct options *options)
{
	const bool is_report = options->verb->id == VERB_REPORT;

	return (options->verb->id == VERB_SAMPLE || is_report) && !options->output &&
	       !options->push.destination.url && !options->max_size_bytes && options->symbols &&
	       isatty(options->pid || is_report ? STDOUT_FILENO : STDERR_FILENO);
}

static struct error *choose_writer(struct options *options)
{
	const char *path = options->output;
	const bool is_directory = options->ring_ns || options->every_ns;

	options->answers = !is_directory && is_asked_by_person(options);
	options->writer = is_directory ? &writer_pprof : &writer_folded;
	if (options->verb->id == VERB_VIEW || (options->answers && !options->waits_ns))
		options->writer = &writer_html;
	if (!path || options->verb->id == VERB_VIEW)
		return NULL;
	const struct writer *named = writer_by_file_name(path);
	if (named)
		options->writer = named;
	else if (find_ending(path) && !is_directory)
		return refuse_ending(path, find_ending(path));
	return NULL;
}

// One that is not there need not be a mistake, but is likely to be one.
static void warn_of_debug_directories(const struct options *options)
{
	for (size_t i = 0; i < options->n_debug_directories && !options->quiet; i++) {
		const char *path = options->debug_directories[i];
		_cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			fprintf(stderr, "profiler: --debug-dir: cannot open %s: %s\n", path,
			        strerror(errno));
	}
}

// Returns the mistake with the help to read, that of the verb; takes it.
static struct error *name_help(struct error *mistake, const struct verb *verb)
{
	_cleanup_error_ struct error *error = mistake;

	return error_create(error_status(error), "%s (see profiler %s%s--help)",
	                    error_message(error), verb->name ?: "", verb->name ? " " : "");
}

struct error *options_parse(int argc, char **argv, struct options *ret)
{
	struct options options = {
	    .verb = &verbs[VERB_SAMPLE],
	    .max_depth = DEFAULT_MAX_DEPTH,
	    .huge_depth = DEFAULT_HUGE_DEPTH,
	    .runtimes = ~0u,
	    .max_overhead_percent = DEFAULT_MAX_OVERHEAD_PERCENT,
	    .inlines = true,
	    .symbols = true,
	    .ring_bytes = OPTIONS_RING_BYTES,
	    .ready_fd = -1,
	    .agent.max_cpu_percent = -1,
	};
	struct error *error = parse_all(argc, argv, &options);

	if (!error && (options.help || options.version)) {
		*ret = (struct options){.verb = options.verb,
		                        .help = options.help,
		                        .help_all = options.help_all,
		                        .version = options.version};
		options_deinit(&options);
		return NULL;
	}
	if (options.push.destination.url && options.verb->id == VERB_SAMPLE)
		push_set_defaults(&options);
	if (!options.frequency_hz)
		options.frequency_hz =
		    options.verb->id == VERB_AGENT ? AGENT_FREQUENCY_HZ : DEFAULT_FREQUENCY_HZ;
	if (!error && !((FOR_NOW | FOR_PUSH | FOR_AGENT) & 1u << options.verb->id)) {
		error = options.writer ? NULL : choose_writer(&options);
		error = error ? error : check(&options);
	}
	if (error) {
		const struct verb *verb = options.verb;
		options_deinit(&options);
		return name_help(error, verb);
	}
	warn_of_debug_directories(&options);
	*ret = options;
	return NULL;
}

// People also give the name of a program.
static struct error *refuse_pid(const char *what, const char *word)
{
	if (isalpha((unsigned char)word[0]))
		return option_error("%s '%s' is not a process id; for the ids of its processes: "
		                    "$(pidof %s)",
		                    what, word, word);
	return option_error("%s '%s' is not a process id: give a number such as 1234", what, word);
}

struct error *options_add_pids(struct options *options, const char *text, const char *what)
{
	static const char separators[] = ", \t\n";
	_cleanup_free_ char *words = memory_strdup(text);
	char *rest;
	long pid;
	bool has_any = false;

	for (char *word = strtok_r(words, separators, &rest); word;
	     word = strtok_r(NULL, separators, &rest)) {
		if (!quantity_parse_count(word, INT_MAX, &pid))
			return refuse_pid(what, word);
		has_any = true;
		if (options->pid)
			*array_push(options->more_pids, options->n_more_pids,
			            options->more_pids_capacity) = (int)pid;
		else
			options->pid = (int)pid;
	}
	if (!has_any)
		return refuse_pid(what, text);
	return NULL;
}

struct error *options_debug_sources(const struct options *options, struct debug_sources *ret)
{
	struct error *error =
	    debug_sources_init(ret, options->debug_directories, options->debuginfod,
	                       !options->quiet && isatty(STDERR_FILENO));

	unsetenv("DEBUGINFOD_URLS");
	return error;
}

bool options_has_several(const struct options *options)
{
	return options->children || options->n_more_pids > 0;
}

void options_deinit(struct options *options)
{
	free(options->more_pids);
	options->more_pids = NULL;
	options->n_more_pids = 0;
	for (size_t i = 0; i < N_SELECTION_REGEXES; i++)
		if (options->has_regex[i])
			regfree(&options->regexes[i]);
	memset(options->has_regex, 0, sizeof(options->has_regex));
	for (size_t i = 0; i < options->n_label_filters; i++) {
		free(options->label_filters[i].key);
		regfree(&options->label_filters[i].regex);
	}
	free(options->label_filters);
	options->label_filters = NULL;
	options->n_label_filters = 0;
	free(options->label_frames);
	options->label_frames = NULL;
	free(options->debug_directories);
	options->debug_directories = NULL;
	diff_options_deinit(&options->diff);
	push_options_deinit(&options->push);
	agent_options_deinit(&options->agent);
}
