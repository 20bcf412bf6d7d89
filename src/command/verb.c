// SPDX-License-Identifier: MIT
#include "verb.h"

#include <stdio.h>
#include <string.h>

#include "agent_options.h"
#include "dump_options.h"
#include "error.h"
#include "memory.h"
#include "option_table.h"
#include "options.h"
#include "push_options.h"
#include "top_options.h"

enum { SUMMARY_COLUMN = 19 };

static struct error *take_file(struct options *options, const char *file)
{
	if (options->recording)
		return option_error("%s: '%s' is one file too many", options->verb->name, file);
	options->recording = file;
	return NULL;
}

static struct error *take_two_files(struct options *options, const char *file)
{
	if (!options->recording)
		return take_file(options, file);
	if (options->other)
		return option_error("diff: '%s' is one file too many", file);
	options->other = file;
	return NULL;
}

static struct error *check_file(struct options *options)
{
	const char *name = options->verb->name;

	if (options->recording)
		return NULL;
	return option_error("%s: no recording is given: profiler %s FILE; to run a command of that "
	                    "name: profiler -- %s",
	                    name, name, name);
}

static struct error *check_two_files(struct options *options)
{
	if (options->other)
		return NULL;
	return option_error("diff: two recordings or folded profiles are not given: profiler diff "
	                    "A B; to run a command of that name: profiler -- diff");
}

#define READING_STATUSES "0; 1 (the file cannot be read), 2 (command line), 3 (output)."

const struct verb verbs[N_VERBS] = {
    [VERB_SAMPLE] =
        {
            .id = VERB_SAMPLE,
            .usage =
                "Usage: profiler [OPTION...] -p PID\n"
                "       profiler [OPTION...] [--] COMMAND [ARG...]\n"
                "       profiler VERB [OPTION...] ...\n"
                "Shows where every thread of a process spends its time, running or blocked: it\n"
                "samples them until the end, and writes a profile or a recording. With a verb:\n",
            .statuses = "the command's own; with -p 0; else 1 (target), 2 (command line),\n"
                        "3 (output), 126 or 127 (the command cannot be run). More in profiler(1).",
        },
    [VERB_REPORT] =
        {
            .id = VERB_REPORT,
            .name = "report",
            .operands = "FILE",
            .summary = "turn a recording (-f record) into any other format",
            .usage = "Usage: profiler report [OPTION...] FILE.wprof\n"
                     "Turns a recording (-f record), or a part of it, into any other format.\n",
            .statuses = READING_STATUSES,
            .take_word = take_file,
            .check = check_file,
        },
    [VERB_DIFF] =
        {
            .id = VERB_DIFF,
            .name = "diff",
            .operands = "A B",
            .summary = "what has changed between two recordings or folded profiles",
            .usage = "Usage: profiler diff [OPTION...] A B\n"
                     "Shows what has changed from A to B, two recordings or folded profiles.\n",
            .statuses = READING_STATUSES,
            .take_word = take_two_files,
            .check = check_two_files,
        },
    [VERB_VIEW] =
        {
            .id = VERB_VIEW,
            .name = "view",
            .operands = "FILE",
            .summary = "show a recording, folded stacks, pprof or a page in a browser",
            .usage =
                "Usage: profiler view [OPTION...] FILE\n"
                "Shows a recording, folded stacks or a pprof profile of any profiler, or a page\n"
                "in a browser; where there is none, it prints the name of the page's file.\n",
            .statuses = READING_STATUSES,
            .instead = "it makes its own file; for a page elsewhere: "
                       "profiler report FILE -o page.html",
            .take_word = take_file,
            .check = check_file,
        },
    [VERB_TOP] =
        {
            .id = VERB_TOP,
            .name = "top",
            .operands = "PID",
            .summary = "what all threads do, live; or a recording, played back",
            .usage =
                "Usage: profiler top [OPTION...] PID\n"
                "       profiler top [OPTION...] FILE.wprof\n"
                "       profiler top [OPTION...] -- COMMAND [ARG...]\n"
                "Shows what the threads of a process do, and wait for, second by second: live, or\n"
                "of a recording.\n",
            .statuses = "0, or the command's own; 1 (target), 2 (command line), 3 (output).",
            .takes_command = true,
            .own_rows = &top_rows,
            .take_word = top_take_word,
            .check = top_check,
        },
    [VERB_DUMP] =
        {
            .id = VERB_DUMP,
            .name = "dump",
            .operands = "PID",
            .summary = "all stacks now, who waits for whom, and deadlocks",
            .usage =
                "Usage: profiler dump [OPTION...] PID\n"
                "       profiler dump [OPTION...] FILE.wprof --at=WHEN\n"
                "Prints the stacks of all threads of a process now: what each does, since when,\n"
                "what it waits for and who holds that; and deadlocks. Sleeping threads are not\n"
                "stopped.\n",
            .statuses = "0; 1 (target), 2 (command line), 3 (output); with --check 10 or 11.",
            .own_rows = &dump_rows,
            .take_word = dump_take_word,
            .check = dump_check,
        },
    [VERB_PUSH] =
        {
            .id = VERB_PUSH,
            .name = "push",
            .operands = "URL FILE",
            .summary = "send profiles to Pyroscope, Parca or others",
            .usage =
                "Usage: profiler push [OPTION...] URL FILE|DIR...\n"
                "Sends pprof profiles and recordings to a server: http(s):// is Grafana\n"
                "Pyroscope's address, parca+http(s):// Parca's, otlp+http(s):// that of who takes\n"
                "OpenTelemetry's protocol 1.10; pprof+http(s):// takes the file as a body. What\n"
                "the server does not take now is tried again.\n",
            .statuses = "0: all was sent; 1, 2 (command line), 3 (something was not sent).",
            .own_rows = &push_rows,
            .take_word = push_take_word,
            .check = push_check,
        },
    [VERB_AGENT] =
        {
            .id = VERB_AGENT,
            .name = "agent",
            .operands = "RULE",
            .summary = "sample the processes of a machine in turn, for servers",
            .usage =
                "Usage: profiler agent [OPTION...] --push=URL RULE...\n"
                "       profiler agent --list RULE...\n"
                "Watches the processes of this machine, and samples those that a rule chooses, a\n"
                "window at a time. A rule is words such as 'comm=java user=app': comm, cmd, exe,\n"
                "user, unit and cgroup are extended regexes for the whole, and all must match;\n"
                "service=NAME and label.KEY=VALUE name what it chooses.\n",
            .statuses = "0 (ended by a signal); 1, 2 (command line), 3 (output).",
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

static void print_verbs(FILE *stream)
{
	for (size_t i = 0; i < N_VERBS; i++) {
		const struct verb *verb = &verbs[i];
		if (!verb->name)
			continue;
		const int column = fprintf(stream, "  %s %s", verb->name, verb->operands);
		fprintf(stream, "%*s%s\n", SUMMARY_COLUMN - column, "", verb->summary);
	}
	fputs("Each has options of its own (profiler report --help). To profile a command of\n"
	      "such a name: profiler -- report\n",
	      stream);
}

char *verb_help(const struct verb *verb, const struct option_table *shared)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return memory_strdup("");
	fputs(verb->usage, stream);
	if (!verb->name)
		print_verbs(stream);
	if (verb->own_rows)
		option_table_print(verb->own_rows, 1u << verb->id, stream);
	option_table_print(shared, 1u << verb->id, stream);
	fprintf(stream, "\nExit status: %s\n", verb->statuses);
	fclose(stream);
	return text;
}
