// SPDX-License-Identifier: MIT
#include "verb.h"

#include <stdio.h>
#include <string.h>

#include "agent_command.h"
#include "clock.h"
#include "diff_command.h"
#include "dump_command.h"
#include "error.h"
#include "memory.h"
#include "option_table.h"
#include "options.h"
#include "push_options.h"
#include "similar.h"
#include "top_command.h"
#include "write_explain.h"

enum { SUMMARY_COLUMN = 19 };

// The command line of `profiler explain`.

enum { DEFAULT_S = 10 };

static struct error *parse_json(struct options *options, const char *value)
{
	(void)value;
	options->writer = &writer_explain_json;
	return NULL;
}

static struct error *parse_markdown(struct options *options, const char *value)
{
	(void)value;
	options->writer = &writer_explain_markdown;
	return NULL;
}

static const struct option_row own_rows[] = {
    {.help = "What is sampled and printed:", .verbs = FOR_EXPLAIN},
    {.short_name = 'd',
     .long_name = "duration",
     .argument = "TIME",
     .help = "sample for TIME: 30, 500ms, 2m; default 10s"},
    {.short_name = 'o',
     .long_name = "output",
     .argument = "FILE",
     .rare = true,
     .help = "write to FILE instead of standard output"},
    {.long_name = "json", .help = "print JSON", .parse = parse_json},
    {.long_name = "markdown", .help = "print Markdown", .parse = parse_markdown},
};

static const struct option_table explain_rows = {.rows = own_rows, .n_rows = array_size(own_rows)};

// For struct verb: checks that there is a process or a recording, and sets what is sampled and
// written.
static struct error *explain_check(struct options *options)
{
	if (!options->pid && !options->recording)
		return option_error(
		    "explain: give a process: profiler explain PID; to run a command "
		    "of that name: profiler -- explain");
	if (!options->writer)
		options->writer = &writer_explain;
	if (options->pid && !options->duration_ns)
		options->duration_ns = DEFAULT_S * NS_PER_SECOND;
	options->blame = true;
	options->tells_lacks = !options->quiet;
	options->quiet = true;
	return NULL;
}

static struct error *take_file(struct options *options, const char *file)
{
	if (options->recording)
		return option_error("%s: give only one file: '%s' is one more", options->verb->name,
		                    file);
	options->recording = file;
	return NULL;
}

static struct error *check_file(struct options *options)
{
	const char *name = options->verb->name;

	if (options->recording)
		return NULL;
	return option_error(
	    "%s: give a file: profiler %s FILE; to run a command of that name: profiler -- %s",
	    name, name, name);
}

#define READING_STATUSES "0; 1: the file cannot be read; 2: command line; 3: output."

const struct verb verbs[N_VERBS] = {
    [VERB_SAMPLE] =
        {
            .id = VERB_SAMPLE,
            .usage =
                "Usage: profiler [record] [OPTION...] -p PID\n"
                "       profiler [record] [OPTION...] [--] COMMAND [ARG...]\n"
                "       profiler VERB [OPTION...] ...\n"
                "Shows where every thread of a process spends its time: running, or waiting for\n"
                "locks, files, sockets, timers or other processes.\n",
            .examples =
                "  profiler -p 1234 -d 10                ten seconds: tables, and a page\n"
                "  profiler -o run.pb.gz -- ./server     a command from its start, for pprof\n"
                "  profiler -p 1234 -o hour.wprof        record now, ask later\n"
                "  profiler report hour.wprof --from=14:03 --to=14:04 -o minute.html\n",
            .statuses = "the command's own; with -p: 0; 1: target; 2: command line;\n"
                        "3: output; 126, 127: the command cannot be run. See profiler(1).",
        },
    [VERB_EXPLAIN] =
        {
            .id = VERB_EXPLAIN,
            .name = "explain",
            .operands = "PID",
            .summary = "say in a few sentences what takes the time, and why",
            .usage = "Usage: profiler explain [OPTION...] PID...\n"
                     "       profiler explain [OPTION...] FILE.wprof\n"
                     "Samples a process for ten seconds, or reads a recording, and says what its\n"
                     "threads spend most of their time on, what they wait for, and who makes them\n"
                     "wait.\n",
            .examples = "  profiler explain 1234\n"
                        "  profiler explain -c -d 30 1234         its child processes as well\n"
                        "  profiler explain hour.wprof --from=14:03 --to=14:04\n",
            .statuses = "0; 1: target or file; 2: command line; 3: output.",
            .own_rows = &explain_rows,
            .take_word = dump_take_word,
            .check = explain_check,
        },
    [VERB_DUMP] =
        {
            .id = VERB_DUMP,
            .name = "dump",
            .operands = "PID",
            .summary = "print all stacks now, who waits for whom, and deadlocks",
            .usage =
                "Usage: profiler dump [OPTION...] PID...\n"
                "       profiler dump [OPTION...] FILE.wprof --at=WHEN\n"
                "Prints what all threads of a process do now, since when, what they wait for and\n"
                "who holds it; and deadlocks. Sleeping threads are not stopped.\n",
            .examples = "  profiler dump 1234\n"
                        "  profiler dump 1234 -n 3                    which threads do not move\n"
                        "  profiler dump 1234 --check --blocked=30s   a health check\n"
                        "  profiler dump hour.wprof --at=14:03:07     at that time\n",
            .statuses = "0; 1: target; 2: command line; 3: output; 10, 11: see --check.",
            .own_rows = &dump_rows,
            .take_word = dump_take_word,
            .check = dump_check,
        },
    [VERB_TOP] =
        {
            .id = VERB_TOP,
            .name = "top",
            .operands = "PID",
            .summary = "watch threads, functions and waits, live",
            .usage =
                "Usage: profiler top [OPTION...] PID...\n"
                "       profiler top [OPTION...] FILE.wprof\n"
                "       profiler top [OPTION...] -- COMMAND [ARG...]\n"
                "Shows second by second what the threads of a process do and wait for: live, or\n"
                "from a recording.\n",
            .examples = "  profiler top 1234\n"
                        "  profiler top 1234 --view=waits\n"
                        "  profiler top -n 5 --json -- ./server --port 8080\n",
            .statuses = "0, or the command's own; 1: target; 2: command line; 3: output.",
            .takes_command = true,
            .own_rows = &top_rows,
            .take_word = dump_take_word,
            .check = top_check,
        },
    [VERB_VIEW] =
        {
            .id = VERB_VIEW,
            .name = "view",
            .operands = "FILE",
            .summary = "show a profile of any profiler in a browser",
            .usage = "Usage: profiler view [OPTION...] FILE\n"
                     "Shows a recording, folded stacks, a pprof profile or a page in a browser.\n"
                     "Without a browser it prints the name of the page's file.\n",
            .examples = "  profiler view hour.wprof --from=14:03 --to=14:04\n"
                        "  profiler view hour.wprof --serve=8080      over ssh\n"
                        "  profiler view cpu.pb.gz\n",
            .statuses = READING_STATUSES,
            .instead = "it makes its own file; for a page elsewhere: "
                       "profiler report FILE -o page.html",
            .take_word = take_file,
            .check = check_file,
        },
    [VERB_REPORT] =
        {
            .id = VERB_REPORT,
            .name = "report",
            .operands = "FILE",
            .summary = "turn a recording, or part of it, into another format",
            .usage = "Usage: profiler report [OPTION...] FILE.wprof\n"
                     "Turns a recording (made with -o FILE.wprof), or part of it, into another "
                     "format.\n",
            .examples =
                "  profiler report hour.wprof --from=14:03 --to=14:04 -o minute.html\n"
                "  profiler report hour.wprof --thread='^worker' -o worker.pb.gz\n"
                "  profiler report hour.wprof --waits=1s         which threads hung, and in what\n",
            .statuses = READING_STATUSES,
            .take_word = take_file,
            .check = check_file,
        },
    [VERB_DIFF] =
        {
            .id = VERB_DIFF,
            .name = "diff",
            .operands = "A B",
            .summary = "show what changed between two profiles",
            .usage = "Usage: profiler diff [OPTION...] A B\n"
                     "       profiler diff [OPTION...] --before A... --after B...\n"
                     "Shows what changed from A to B (recordings, folded or pprof profiles): on a\n"
                     "terminal as a table, which tells changes from chance; in a pipe as folded\n"
                     "stacks.\n"
                     "FILE.wprof@FROM..TO is a part of a recording.\n",
            .examples = "  profiler diff before.wprof after.wprof\n"
                        "  profiler diff hour.wprof@14:00..14:10 hour.wprof@14:20..14:30\n"
                        "  profiler diff --before main*.wprof --after branch*.wprof --check=2%\n"
                        "  profiler diff before.wprof after.wprof -o difference.html\n",
            .statuses = "0; 1: a file cannot be read; 2: command line; 3: output;\n"
                        "10, 11: see --check.",
            .own_rows = &diff_rows,
            .take_word = diff_take_word,
            .check = diff_check,
        },
    [VERB_PUSH] =
        {
            .id = VERB_PUSH,
            .name = "push",
            .operands = "URL FILE",
            .summary = "send profiles to Pyroscope, Parca and others",
            .usage =
                "Usage: profiler push [OPTION...] URL FILE|DIR...\n"
                "Sends pprof profiles and recordings to a server, and tries again until it takes\n"
                "them. The URL says which one:\n"
                "  http://          Grafana Pyroscope\n"
                "  parca+http://    Parca\n"
                "  otlp+http://     OpenTelemetry profiles, protocol 1.10\n"
                "  pprof+http://    any other: the file is the body of a POST\n"
                "and each of them with https.\n",
            .examples = "  profiler push http://pyroscope:4040 --service=shop minutes/\n"
                        "  profiler push parca+https://parca.example --follow minutes/\n",
            .statuses = "0: all was sent; 1; 2: command line; 3: something was not sent.",
            .own_rows = &push_rows,
            .take_word = push_take_word,
            .check = push_check,
        },
    [VERB_AGENT] =
        {
            .id = VERB_AGENT,
            .name = "agent",
            .operands = "RULE",
            .summary = "sample many processes of this machine in turn",
            .usage =
                "Usage: profiler agent [OPTION...] --push=URL RULE...\n"
                "       profiler agent [OPTION...] -o DIR RULE...\n"
                "       profiler agent --list RULE...\n"
                "Watches the processes of this machine and samples those that match a rule, each\n"
                "for ten seconds a minute. A rule is a list of conditions, such as\n"
                "'comm=java user=app', all of which must match: comm, cmd, exe, user, unit and\n"
                "cgroup are extended regexes for the whole value. service=NAME and\n"
                "label.KEY=VALUE in a rule name what it chooses.\n",
            .examples =
                "  profiler agent --list 'comm=java'\n"
                "  profiler agent --push=http://pyroscope:4040 'comm=java label.team=web'\n",
            .statuses = "0: ended by a signal; 1; 2: command line; 3: output.",
            .own_rows = &agent_rows,
            .take_word = agent_take_word,
            .check = agent_check,
        },
};

const struct verb *verb_named(const char *name)
{
	for (size_t i = 0; i < N_VERBS; i++)
		if (verbs[i].name && strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

const struct verb *verb_similar(const char *word)
{
	struct similar similar = {.word = word};

	for (size_t i = 0; i < N_VERBS; i++)
		if (verbs[i].name)
			similar_add(&similar, verbs[i].name);
	return similar.best ? verb_named(similar.best) : NULL;
}

static void print_verbs(FILE *stream)
{
	fputs("\n", stream);
	for (size_t i = 0; i < N_VERBS; i++) {
		const struct verb *verb = &verbs[i];
		if (!verb->name)
			continue;
		const int column = fprintf(stream, "  %s %s", verb->name, verb->operands);
		fprintf(stream, "%*s%s\n", SUMMARY_COLUMN - column, "", verb->summary);
	}
}

static void print_all(const struct verb *verb, const struct option_table *shared, FILE *stream)
{
	if (verb->own_rows)
		option_table_print_own(verb->own_rows, true, stream);
	option_table_print(shared, verb->own_rows, 1u << verb->id, stream);
	fprintf(stream, "\nExit status: %s\n", verb->statuses);
}

static void print_common(const struct verb *verb, const struct option_table *shared, FILE *stream)
{
	if (verb->own_rows)
		option_table_print_own(verb->own_rows, false, stream);
	fputs("\n", stream);
	option_table_print_common(shared, verb->own_rows, 1u << verb->id, stream);
	fprintf(stream, "\nExamples:\n%s", verb->examples);
	if (verb->name)
		fprintf(stream, "\nAll options: profiler %s --help-all; manual: man profiler-%s\n",
		        verb->name, verb->name);
	else
		fputs("\nAll options: profiler --help-all; of a verb: profiler dump --help. "
		      "Manual: man\n"
		      "profiler. To run a command that is named like a verb: profiler -- top\n",
		      stream);
}

char *verb_help(const struct verb *verb, const struct option_table *shared, bool all)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return memory_strdup("");
	fputs(verb->usage, stream);
	if (!verb->name)
		print_verbs(stream);
	(all ? print_all : print_common)(verb, shared, stream);
	fclose(stream);
	return text;
}
