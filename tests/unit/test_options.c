// SPDX-License-Identifier: MIT
// options: every option, and every mistake with its message.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "memory.h"
#include "options.h"
#include "profile.h"
#include "quantity.h"
#include "unit.h"
#include "verb.h"
#include "writer.h"

enum { MAX_WORDS = 32 };

// A command line, split at single spaces.
struct line {
	char *text;
	char *argv[MAX_WORDS];
	int argc;
};

static void line_deinit(struct line *line)
{
	free(line->text);
}

static struct line split(const char *text)
{
	struct line line = {.text = memory_strdup(text)};
	char *rest = line.text;

	line.argv[line.argc++] = (char *)"profiler";
	while (rest) {
		assert_true(line.argc < MAX_WORDS - 1);
		line.argv[line.argc++] = strsep(&rest, " ");
	}
	return line;
}

// Parses a command line that must be right. The words live until line_deinit.
#define PARSE(text)                                                                                \
	__attribute__((cleanup(line_deinit))) struct line line = split(text);                      \
	__attribute__((cleanup(options_deinit))) struct options options = {0};                     \
	assert_null(options_parse(line.argc, line.argv, &options))

// The command line must be refused with exactly this message.
static void assert_refused_words(int argc, char **argv, const char *message)
{
	struct options options = {.pid = 4711};
	_cleanup_error_ struct error *error = options_parse(argc, argv, &options);
	const struct verb *verb = NULL; // the first word that is one

	for (int i = 1; !verb && i < argc; i++)
		verb = verb_named(argv[i]);
	_cleanup_free_ char *expected = memory_printf("%s (see profiler %s%s--help)", message,
	                                              verb ? verb->name : "", verb ? " " : "");

	assert_non_null(error);
	assert_int_equal(error_status(error), EXIT_STATUS_USAGE);
	assert_string_equal(error_message(error), expected);
	assert_null(strchr(error_message(error), '\n'));
	assert_int_equal(options.pid, 4711); // untouched
}

static void assert_refused(const char *text, const char *message)
{
	__attribute__((cleanup(line_deinit))) struct line line = split(text);

	assert_refused_words(line.argc, line.argv, message);
}

static void test_defaults(void **state)
{
	(void)state;
	PARSE("-p 1234");
	assert_int_equal(options.pid, 1234);
	assert_null(options.command);
	assert_int_equal(options.duration_ns, 0);
	assert_true(options.frequency_hz == 99);
	assert_null(options.output);
	assert_ptr_equal(options.writer, &writer_folded);
	assert_false(options.threads);
	assert_false(options.on_cpu);
	assert_false(options.off_cpu);
	assert_int_equal(options.states, 0);
	for (size_t i = 0; i < N_SELECTION_REGEXES; i++)
		assert_false(options.has_regex[i]);
	assert_true(options.inlines);
	assert_false(options.lines);
	assert_false(options.syscalls);
	assert_false(options.kernel);
	assert_int_equal(options.max_depth, 8192);
	assert_false(options.stop_all);
	assert_true(options.max_overhead_percent == 5);
	assert_false(options.quiet);
	assert_false(options.verbose);
	assert_int_equal(options.seed, 0);
	assert_false(options.help);
	assert_false(options.version);
}

static void test_short_options(void **state)
{
	(void)state;
	PARSE("-p7 -d 2m -F 250 -o out -f pprof -tqv");
	assert_int_equal(options.pid, 7);
	assert_int_equal(options.duration_ns, 120 * NS_PER_SECOND);
	assert_true(options.frequency_hz == 250);
	assert_string_equal(options.output, "out");
	assert_ptr_equal(options.writer, &writer_pprof);
	assert_true(options.threads);
	assert_true(options.quiet);
	assert_true(options.verbose);
}

static void test_long_options(void **state)
{
	(void)state;
	PARSE("--pid=7 --duration 500ms --frequency=0099.5 --output=- --format=folded --threads "
	      "--off-cpu --thread=^io --no-inlines --lines --max-depth=65536 --stop-all -c "
	      "--max-overhead=2.5% --quiet --verbose --seed=4294967295 "
	      "--syscalls --kernel");
	assert_int_equal(options.pid, 7);
	assert_int_equal(options.duration_ns, 500 * NS_PER_MS);
	assert_true(options.frequency_hz == 99.5);
	assert_string_equal(options.output, "-");
	assert_ptr_equal(options.writer, &writer_folded);
	assert_true(options.threads);
	assert_false(options.on_cpu);
	assert_true(options.off_cpu);
	assert_true(options.has_regex[SELECTION_THREAD]);
	assert_int_equal(regexec(&options.regexes[SELECTION_THREAD], "io-3", 0, NULL, 0), 0);
	assert_int_equal(regexec(&options.regexes[SELECTION_THREAD], "audio", 0, NULL, 0),
	                 REG_NOMATCH);
	assert_false(options.inlines);
	assert_true(options.lines);
	assert_true(options.syscalls);
	assert_true(options.kernel);
	assert_int_equal(options.max_depth, 65536);
	assert_true(options.stop_all);
	assert_true(options.max_overhead_percent == 2.5);
	assert_true(options.quiet);
	assert_true(options.verbose);
	assert_int_equal(options.seed, UINT32_MAX);
}

static void test_abbreviated(void **state)
{
	(void)state;
	PARSE("--pi 7 --on --dur=1 --thread x");
	assert_int_equal(options.pid, 7);
	assert_true(options.on_cpu);
	assert_int_equal(options.duration_ns, NS_PER_SECOND);
	assert_true(options.has_regex[SELECTION_THREAD]); // an exact name is not ambiguous
	assert_false(options.threads);
}

static void test_last_wins(void **state)
{
	(void)state;
	PARSE("-p 2 -d 1 -d 2 -F 1 -F 2 -f pprof -f folded -o a -o b --no-inlines --inlines");
	assert_int_equal(options.pid, 2);
	assert_int_equal(options.duration_ns, 2 * NS_PER_SECOND);
	assert_true(options.frequency_hz == 2);
	assert_ptr_equal(options.writer, &writer_folded);
	assert_string_equal(options.output, "b");
	assert_true(options.inlines);
}

static void test_last_regex_wins(void **state)
{
	(void)state;
	PARSE("-p 1 --thread=^a$ --thread=^(b|c)+$");
	assert_int_equal(regexec(&options.regexes[SELECTION_THREAD], "a", 0, NULL, 0), REG_NOMATCH);
	assert_int_equal(regexec(&options.regexes[SELECTION_THREAD], "bcb", 0, NULL, 0), 0);
}

static void test_command(void **state)
{
	(void)state;
	PARSE("-d 3 make -p 5 --quiet --nonsense -- -q");
	assert_int_equal(options.pid, 0);
	assert_ptr_equal(options.command, line.argv + 3);
	assert_string_equal(options.command[0], "make");
	assert_string_equal(options.command[1], "-p");
	assert_string_equal(options.command[6], "-q");
	assert_null(options.command[7]);
	assert_false(options.quiet); // the command's own
}

static void test_command_after_dashes(void **state)
{
	(void)state;
	PARSE("-q -- -odd --name");
	assert_true(options.quiet);
	assert_string_equal(options.command[0], "-odd");
	assert_string_equal(options.command[1], "--name");
}

static void test_format_follows_name(void **state)
{
	static const struct {
		const char *text;
		const struct writer *writer;
	} cases[] = {
	    {"-p 1 -o x.pb.gz", &writer_pprof},
	    {"-p 1 -o dir.folded/x.pb", &writer_pprof},
	    {"-p 1 -o x.pprof", &writer_pprof},
	    {"-p 1 -o x.folded", &writer_folded},
	    {"-p 1 -o x.txt", &writer_folded},
	    {"-p 1 -o x.svg/plain", &writer_folded},
	    {"-p 1 -o profile.1234", &writer_folded},
	    {"-p 1 -o .hidden", &writer_folded},
	    {"-p 1 -o x.svg -f folded", &writer_folded},
	    {"-p 1 --every=60s -o x.json", &writer_pprof},
	    {"-p 1 -o -", &writer_folded},
	    {"-p 1 -o x.folded -f pprof", &writer_pprof},
	    {"-p 1 -f folded -o x.pb.gz", &writer_folded},
	    {"true", &writer_folded},
	    {"-p 1 -o x.wprof", &writer_record},
	    {"report x.wprof", &writer_folded},
	    {"report x.wprof -o x.pb.gz", &writer_pprof},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		PARSE(cases[i].text);
		assert_ptr_equal(options.writer, cases[i].writer);
	}
	assert_refused("-p 1 -o a/x.svg", "-o a/x.svg: there is no format svg; for a flame graph "
	                                  "give -o a/x.html");
	assert_refused("report a -o x.json",
	               "-o x.json: which JSON? Give -o x.speedscope.json, .firefox.json, "
	               ".trace.json or .sentry.json");
	assert_refused("-p 1 -o x.perf.data",
	               "-o x.perf.data: no format has the ending .data: give .html, .pb.gz, "
	               ".wprof, .folded or .txt, or choose a format with -f");
}

static void test_report(void **state)
{
	(void)state;
	{
		PARSE("-q report --on-cpu x.wprof --from 1.5s --to=14:03 -t");
		assert_string_equal(options.recording, "x.wprof");
		assert_null(options.command);
		assert_int_equal(options.pid, 0);
		assert_true(options.quiet && options.on_cpu && options.threads);
		assert_int_equal(options.from.kind, TIME_POINT_OFFSET);
		assert_int_equal(options.from.ns, 1500 * NS_PER_MS);
		assert_int_equal(options.to.kind, TIME_POINT_DAY_TIME);
	}
	{
		PARSE("-- report -x");
		assert_null(options.recording);
		assert_string_equal(options.command[0], "report");
		assert_string_equal(options.command[1], "-x");
	}
	{
		PARSE("./report");
		assert_string_equal(options.command[0], "./report");
	}
	{
		PARSE("report -h");
		assert_true(options.help);
	}
	assert_refused("report", "report: give a file: profiler report FILE; to run a command of "
	                         "that name: profiler -- report");
	assert_refused("report a b", "report: give only one file: 'b' is one more");
	assert_refused("report a -d 3",
	               "report: --duration only works while sampling: leave it out");
	assert_refused("-p 1 report a", "report: --pid only works while sampling: leave it out");
	assert_refused("report a -f record",
	               "--format: only sampling writes a recording: choose another format");
	assert_refused("report a --nonsense", "unknown option '--nonsense'");
}

static void test_slices_and_sizes(void **state)
{
	uint64_t bytes = 7;

	(void)state;
	{
		PARSE("-p 1 -f record --max-size=1.5M --no-symbols");
		assert_int_equal(options.max_size_bytes, 3 << 19);
		assert_false(options.symbols);
	}
	assert_refused("-p 1 --from=5s --to=5s", "--to must be later than --from");
	assert_refused("-p 1 --from=yesterday",
	               "--from: 'yesterday' is not a time: give one since the start, such as 5s or "
	               "1.5m, or of the day, such as 14:03:07 or 2026-11-20T14:03:07Z");
	assert_refused(
	    "-p 1 -f record --from=5s",
	    "--from and --to do not apply while recording: use them with profiler report");
	assert_refused("-p 1 --max-size=20M", "--max-size and --no-symbols need -f record");
	assert_refused("-p 1 -f record --max-size=1K",
	               "--max-size: '1K' is not a size of at least 1M, such as 20M");
	assert_true(quantity_parse_size("4096", &bytes) && bytes == 4096);
	assert_true(quantity_parse_size("2KB", &bytes) && bytes == 2048);
	assert_true(quantity_parse_size("1T", &bytes) && bytes == (uint64_t)1 << 40);
	assert_false(quantity_parse_size("", &bytes) || quantity_parse_size("0", &bytes) ||
	             quantity_parse_size("5X", &bytes) || quantity_parse_size("-5", &bytes) ||
	             quantity_parse_size("5MM", &bytes) || quantity_parse_size("99999T", &bytes));
}

static void test_help_and_version_end_parsing(void **state)
{
	(void)state;
	{
		PARSE("--thread=x --help --nonsense");
		assert_true(options.help);
		assert_false(options.has_regex[SELECTION_THREAD]);
	}
	{
		PARSE("-h");
		assert_true(options.help);
	}
	{
		PARSE("--version");
		assert_true(options.version);
	}
	{
		PARSE("-V -F nonsense");
		assert_true(options.version);
	}
}

static void test_unknown_options(void **state)
{
	(void)state;
	assert_refused("--nonsense -p 1", "unknown option '--nonsense'");
	assert_refused("-p 1 --nonsense=3", "unknown option '--nonsense=3'");
	assert_refused("-tZ -p 1", "unknown option '-Z'");
	assert_refused("--no-i=1", "--no-inlines takes no value: leave '=1' out");
	assert_refused("--threads=yes -p 1", "--threads takes no value: leave '=yes' out");
	assert_refused("--li=yes -p 1", "--lines takes no value: leave '=yes' out");
	assert_refused("--o -p 1", "option '--o' is ambiguous: --on-cpu or --off-cpu or --output");
	assert_refused("--ver", "option '--ver' is ambiguous: --verbose or --version");
}

static void test_missing_values(void **state)
{
	(void)state;
	assert_refused("-p", "--pid needs a value: --pid=PID");
	assert_refused("--pid", "--pid needs a value: --pid=PID");
	assert_refused("-p 1 -d", "--duration needs a value: --duration=TIME");
	assert_refused("-p 1 -F", "--frequency needs a value: --frequency=HZ");
	assert_refused("-p 1 -o", "--output needs a value: --output=FILE");
	assert_refused("-p 1 -tf", "--format needs a value: --format=FORMAT");
	assert_refused("-p 1 --thread", "--thread needs a value: --thread=REGEX");
	assert_refused("-p 1 --max-overhead",
	               "--max-overhead needs a value: --max-overhead=PERCENT");
	assert_refused("-p 1 --seed=0", "--seed: '0' is not a number from 1 to 4294967295");
	assert_refused("-p 1 --seed=4294967296",
	               "--seed: '4294967296' is not a number from 1 to 4294967295");
	assert_refused(
	    "-p 1 --runtimes=cobol",
	    "--runtimes: 'cobol' is unknown: give auto, none, or some of go,java,python,v8");
	assert_refused("-p 1 --frames=some",
	               "--frames: 'some' is unknown: give auto, all, python or native");
	assert_refused("-p 1 --max-depth", "--max-depth needs a value: --max-depth=N");
}

static void test_bad_pids(void **state)
{
	static const char *const values[] = {"0", "-1", "+1", "12x", "1.5", "", "4294967297"};

	(void)state;
	for (size_t i = 0; i < array_size(values); i++) {
		_cleanup_free_ char *text = memory_printf("--pid=%s", values[i]);
		_cleanup_free_ char *message = memory_printf(
		    "--pid: '%s' is not a process id: give a number such as 1234", values[i]);
		assert_refused(text, message);
	}
}

static void test_bad_frequencies(void **state)
{
	static const char *const values[] = {"0",   "0.99", "10000.5", "1e3", "0x10", "nan",
	                                     "inf", "-5",   "",        ".",   "99Hz", "1.2.3"};

	(void)state;
	for (size_t i = 0; i < array_size(values); i++) {
		_cleanup_free_ char *text = memory_printf("-p 1 --frequency=%s", values[i]);
		_cleanup_free_ char *message =
		    memory_printf("--frequency: '%s' is not a number from 1 to 10000", values[i]);
		assert_refused(text, message);
	}
}

static void test_bad_depths(void **state)
{
	static const char *const values[] = {
	    "0", "65537", "1.5", "-3", "", "1k", "99999999999999999999"};

	(void)state;
	for (size_t i = 0; i < array_size(values); i++) {
		_cleanup_free_ char *text = memory_printf("-p 1 --max-depth=%s", values[i]);
		_cleanup_free_ char *message = memory_printf(
		    "--max-depth: '%s' is not a whole number from 1 to 65536", values[i]);
		assert_refused(text, message);
	}
}

static void test_overheads(void **state)
{
	static const char *const bad[] = {"100.5", "-1", "", "%", "5%%", "5 %", "low"};

	(void)state;
	PARSE("-p 1 --max-overhead=0");
	assert_true(options.max_overhead_percent == 0);
	for (size_t i = 0; i < array_size(bad); i++) {
		_cleanup_free_ char *message = memory_printf(
		    "--max-overhead: '%s' is not a percentage from 0 (no limit) to 100", bad[i]);
		_cleanup_free_ char *argument = memory_printf("--max-overhead=%s", bad[i]);
		assert_refused_words(
		    3, (char *[]){(char *)"profiler", (char *)"-p1", argument, NULL}, message);
	}
}

static void test_bad_duration(void **state)
{
	(void)state;
	assert_refused("-p 1 -d soon", "--duration: 'soon' is not a time above 0: give one such as "
	                               "30, 1.5s, 500ms, 2m or 1h30m");
}

static void test_bad_words(void **state)
{
	(void)state;
	assert_refused("-p 1 --output=", "--output: the file's name is empty: give one, or - for "
	                                 "stdout");
	assert_refused("-p 1 -f svg", "--format: 'svg' is unknown: give folded, pprof, html, "
	                              "record, speedscope, firefox, chrome or sentry");
	assert_refused("-p 1 --thread=a(b", "--thread: 'a(b' is not a regular expression: "
	                                    "Unmatched ( or \\(");
	assert_refused("-p 1 --thread=ok --thread=[b-a]",
	               "--thread: '[b-a]' is not a regular expression: Invalid range end");
}

static void test_contradictions(void **state)
{
	(void)state;
	assert_refused_words(1, (char *[]){(char *)"profiler", NULL},
	                     "nothing to profile: give a process (-p PID) or a command");
	assert_refused("-d 3", "nothing to profile: give a process (-p PID) or a command");
	assert_refused("-p 5 sleep 1", "give either -p 5 or a command ('sleep'), not both");
	assert_refused("--on-cpu --off-cpu -p 1",
	               "--on-cpu and --off-cpu exclude each other: give only one");
}

// profiler -p $(pidof nginx)
static void test_several_pids(void **state)
{
	static const char *const lines[] = {
	    "-p 12 34 56",      "-p 12,34,56",   "-p 12 -p 34,56",   "12 34 56",
	    "-p 12 34 -d 5 56", "dump 12 34,56", "top 12,34 -n1 56", "explain -p 12 34,56 -d1"};

	(void)state;
	for (size_t i = 0; i < array_size(lines); i++) {
		PARSE(lines[i]);
		assert_int_equal(options.pid, 12);
		assert_int_equal(options.n_more_pids, 2);
		assert_int_equal(options.more_pids[0], 34);
		assert_int_equal(options.more_pids[1], 56);
		assert_true(options_has_several(&options));
	}
	assert_refused("-p 12,x",
	               "--pid: 'x' is not a process id; for the ids of its processes: $(pidof x)");
	assert_refused("-p ,", "--pid: ',' is not a process id: give a number such as 1234");
	assert_refused("-p 12 34 make", "give either -p 12 or a command ('make'), not both");
	assert_refused("dump 12 x.wprof",
	               "dump: give processes or one file: 'x.wprof' is one more");
}

// As other profilers are called.
static void test_habits(void **state)
{
	(void)state;
	{
		PARSE("1234 -d 3 -o x.html");
		assert_int_equal(options.pid, 1234);
		assert_int_equal(options.duration_ns, 3 * NS_PER_SECOND);
		assert_ptr_equal(options.writer, &writer_html);
		assert_null(options.command);
	}
	{
		PARSE("-q record -p 5 -d 3");
		assert_true(options.quiet);
		assert_int_equal(options.pid, 5);
		assert_int_equal(options.verb->id, VERB_SAMPLE);
	}
	{
		PARSE("record -d 3 sleep 1");
		assert_string_equal(options.command[0], "sleep");
	}
	{
		PARSE("record 5 -t");
		assert_int_equal(options.pid, 5);
		assert_true(options.threads);
	}
	{
		PARSE("-- record 5");
		assert_string_equal(options.command[0], "record");
	}
	{
		PARSE("-- 5");
		assert_string_equal(options.command[0], "5");
	}
	{
		PARSE("help");
		assert_true(options.help);
		assert_int_equal(options.verb->id, VERB_SAMPLE);
	}
	{
		PARSE("help dump");
		assert_true(options.help);
		assert_int_equal(options.verb->id, VERB_DUMP);
	}
	assert_refused("record", "nothing to profile: give a process (-p PID) or a command");
	assert_refused("help dmup", "no help for 'dmup': did you mean profiler help dump?");
	assert_refused("help me", "no help for 'me': it is not a verb of profiler");
}

static void test_misspelt(void **state)
{
	static const struct {
		const char *word, *verb; // NULL: none
	} words[] = {
	    {"vieew", "view"},
	    {"dmp", "dump"},
	    {"diff2", "diff"},
	    {"raport", "report"},
	    {"rpeorts", "report"},
	    {"tops", "top"},
	    {"sleep", NULL},
	    {"", NULL},
	    {"pullo", NULL},
	    {"repository", NULL},
	    {"reportreportreportreportreportreportreportreport", NULL},
	};

	(void)state;
	for (size_t i = 0; i < array_size(words); i++) {
		const struct verb *verb = verb_similar(words[i].word);
		if (words[i].verb)
			assert_string_equal(verb->name, words[i].verb);
		else
			assert_null(verb);
	}
	assert_refused("--duratoin=3 -p 1",
	               "unknown option '--duratoin=3': did you mean --duration?");
	assert_refused("dump --josn 1", "unknown option '--josn': did you mean --json?");
	assert_refused("--frquency=9", "unknown option '--frquency=9': did you mean --frequency?");
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
	    {"30", 30 * NS_PER_SECOND},
	    {"30s", 30 * NS_PER_SECOND},
	    {"1.5s", 1500 * NS_PER_MS},
	    {"1.5", 1500 * NS_PER_MS},
	    {".25s", 250 * NS_PER_MS},
	    {"2.", 2 * NS_PER_SECOND},
	    {"500ms", 500 * NS_PER_MS},
	    {"2m", 120 * NS_PER_SECOND},
	    {"1h", 3600 * NS_PER_SECOND},
	    {"1h30m", 5400 * NS_PER_SECOND},
	    {"1min5.5sec", 65500 * NS_PER_MS},
	    {"2hours", 7200 * NS_PER_SECOND},
	    {"1d", 86400 * NS_PER_SECOND},
	    {"0.000000001", 1},
	    {"1000000000", 1000000000 * NS_PER_SECOND},
	};
	static const char *const bad[] = {
	    "",    "0",     "0s",         "s",    "-1",   "+1",    " 1",   "1 s",  "1S",
	    "5x",  "1e3",   "0x10",       "nan",  "inf",  ".",     "1..2", "1.5.", "1ss",
	    "1us", "0.1e1", "1000000001", "1h30", "0h30", "1 min", "m",    "1m s", "1h-1m"};
	int64_t ns;

	(void)state;
	for (size_t i = 0; i < array_size(good); i++) {
		assert_true(quantity_parse_time(good[i].text, &ns));
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < array_size(bad); i++) {
		ns = -7;
		assert_false(quantity_parse_time(bad[i], &ns));
		assert_int_equal(ns, -7);
	}
}

// The help is made of the table, so that what it lists is what is parsed. Here: its shape, and
// that the formats it names are those that are there.
static void test_selection(void **state)
{
	const unsigned int running = 1u << THREAD_RUNNING, disk = 1u << THREAD_DISK;

	(void)state;
	{
		PARSE("-p 1 --state=disk,running,disk --syscall=a --focus=b --ignore=c");
		const struct selection selection = options_selection(&options);
		assert_int_equal(selection.states, running | disk);
		assert_null(selection.regexes[SELECTION_THREAD]);
		for (size_t i = SELECTION_SYSCALL; i < N_SELECTION_REGEXES; i++) {
			const char text[] = {(char)('a' + i - SELECTION_SYSCALL), '\0'};
			assert_int_equal(regexec(selection.regexes[i], text, 0, NULL, 0), 0);
			assert_int_equal(regexec(selection.regexes[i], "d", 0, NULL, 0),
			                 REG_NOMATCH);
		}
	}
	{
		PARSE("-p 1 --state=disk,running --on-cpu");
		assert_int_equal(options_selection(&options).states, running);
	}
	{
		PARSE("-p 1 --off-cpu");
		assert_int_equal(options_selection(&options).states & running, 0);
		assert_int_equal(options_selection(&options).states & disk, disk);
		assert_true(options_selection(&options).states & 1u << THREAD_RUNNABLE);
	}
	{
		PARSE("-p 1 --on-cpu");
		assert_int_equal(options_selection(&options).states, running);
	}
}

// What a verb does not take is refused by it, wherever it stands.
static void test_options_of_verbs(void **state)
{
	(void)state;
	assert_refused("--normalize -p 1", "--normalize is for profiler diff");
	assert_refused("report a --normalize", "--normalize is for profiler diff");
	assert_refused("view a -o b.html",
	               "view does not take --output: it makes its own file; for a page elsewhere: "
	               "profiler report FILE -o page.html");
	assert_refused("dump 1 -d 3", "dump does not take --duration: leave it out");
	assert_refused("-d 3 dump 1", "dump does not take --duration: leave it out");
	assert_refused("diff a b --waits=1s", "diff does not take --waits: leave it out");
	assert_refused("--json -p 1", "unknown option '--json'");
	assert_refused("diff a", "diff: give two files to compare: profiler diff A B; to run a "
	                         "command of that name: profiler -- diff");
	{
		PARSE("-q --thread=x dump 1 --json -k");
		assert_int_equal(options.verb->id, VERB_DUMP);
		assert_true(options.quiet && options.dump.json && options.kernel);
	}
	for (size_t i = 0; i < N_VERBS; i++) {
		if (!verbs[i].name)
			continue;
		_cleanup_free_ char *text = memory_printf("-- %s 7", verbs[i].name);
		PARSE(text);
		assert_int_equal(options.verb->id, VERB_SAMPLE);
		assert_string_equal(options.command[0], verbs[i].name);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_defaults),
	    cmocka_unit_test(test_short_options),
	    cmocka_unit_test(test_long_options),
	    cmocka_unit_test(test_abbreviated),
	    cmocka_unit_test(test_last_wins),
	    cmocka_unit_test(test_last_regex_wins),
	    cmocka_unit_test(test_command),
	    cmocka_unit_test(test_command_after_dashes),
	    cmocka_unit_test(test_format_follows_name),
	    cmocka_unit_test(test_report),
	    cmocka_unit_test(test_slices_and_sizes),
	    cmocka_unit_test(test_help_and_version_end_parsing),
	    cmocka_unit_test(test_unknown_options),
	    cmocka_unit_test(test_missing_values),
	    cmocka_unit_test(test_bad_pids),
	    cmocka_unit_test(test_bad_frequencies),
	    cmocka_unit_test(test_bad_depths),
	    cmocka_unit_test(test_bad_duration),
	    cmocka_unit_test(test_overheads),
	    cmocka_unit_test(test_bad_words),
	    cmocka_unit_test(test_contradictions),
	    cmocka_unit_test(test_several_pids),
	    cmocka_unit_test(test_habits),
	    cmocka_unit_test(test_misspelt),
	    cmocka_unit_test(test_times),
	    cmocka_unit_test(test_selection),
	    cmocka_unit_test(test_options_of_verbs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
