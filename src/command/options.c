#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump_options.h"
#include "error.h"
#include "memory.h"
#include "option_rows.h"
#include "option_table.h"
#include "options_check.h"
#include "profile.h"
#include "writer.h"

enum {
	DEFAULT_MAX_DEPTH = 8192, // compilers go beyond 4,000 in nested expressions
	DEFAULT_MAX_OVERHEAD_PERCENT = 5,
	DEFAULT_FREQUENCY_HZ = 99,
};

char *options_help(const struct options *options)
{
	if (options->dump.asked)
		return dump_options_help(&option_rows);
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return memory_strdup("");
	fputs("Usage: profiler [OPTION...] -p PID\n"
	      "       profiler [OPTION...] [--] COMMAND [ARG...]\n"
	      "       profiler report|view [OPTION...] FILE\n"
	      "       profiler diff [OPTION...] A B\n"
	      "       profiler dump [OPTION...] PID\n"
	      "Shows where every thread of a process spends its time, running or blocked;\n"
	      "report turns a recording (-f record) into another format, view shows it in a\n"
	      "browser; diff shows what has changed from one recording (or folded profile) to\n"
	      "another; dump prints all stacks now, and who waits for whom (profiler dump\n"
	      "--help).\n",
	      stream);
	option_table_print(&option_rows, stream);
	fputs("\nExit status: the command's own; with -p 0; else 1 (target), 2 (command line),\n"
	      "3 (output), 126 or 127 (the command cannot be run). More in profiler(1).\n",
	      stream);
	fclose(stream);
	return text;
}

// The sub-command that begins at argv[optind]; NULL: none. "--" before it makes it a command.
static const char *find_sub_command(int argc, char **argv)
{
	static const char *const names[] = {"report", "diff", "dump", "view"};
	const bool after_dashes = optind > 0 && strcmp(argv[optind - 1], "--") == 0;

	for (size_t i = 0; i < array_size(names) && optind < argc && !after_dashes; i++)
		if (strcmp(argv[optind], names[i]) == 0)
			return names[i];
	return NULL;
}

static struct error *take_file(struct options *options, const char *sub_command, const char *file)
{
	const bool two = strcmp(sub_command, "diff") == 0;

	if (options->recording && (!two || options->other))
		return option_error("%s: '%s' is one file too many", sub_command, file);
	*(options->recording ? &options->other : &options->recording) = file;
	options->view = strcmp(sub_command, "view") == 0;
	return NULL;
}

static struct error *check_sub_command(const struct options *options, const char *sub_command,
                                       const struct option_row *sampling)
{
	const bool two = strcmp(sub_command, "diff") == 0;

	if (!options->recording || (two && !options->other))
		return option_error("%s: %s given: profiler %s%s; to run a command of that name: "
		                    "profiler -- %s",
		                    sub_command,
		                    two ? "two recordings or folded profiles are not"
		                        : "no recording is",
		                    sub_command, two ? " A B" : " FILE", sub_command);
	if (sampling)
		return option_error("%s: --%s is for sampling, which is over: leave it out",
		                    sub_command, sampling->long_name);
	return NULL;
}

static struct error *parse_all(int argc, char **argv, struct options *options)
{
	const struct option_row *sampling = NULL;

	optind = 0; // glibc: start anew
	struct error *error = option_table_parse(&option_rows, argc, argv, options, &sampling);
	if (error || options->help || options->version)
		return error;
	const char *sub_command = find_sub_command(argc, argv);
	if (!sub_command) {
		if (optind < argc)
			options->command = argv + optind;
		return NULL;
	}
	if (strcmp(sub_command, "dump") == 0) {
		optind++;
		return dump_options_parse(&option_rows, argc, argv, options);
	}
	// Its options may stand before and after the files.
	for (optind++;;) {
		error = option_table_parse(&option_rows, argc, argv, options, &sampling);
		if (error || options->help || options->version)
			return error;
		if (optind >= argc)
			return check_sub_command(options, sub_command, sampling);
		error = take_file(options, sub_command, argv[optind++]);
		if (error)
			return error;
	}
}

struct error *options_parse(int argc, char **argv, struct options *ret)
{
	struct options options = {
	    .frequency_hz = DEFAULT_FREQUENCY_HZ,
	    .max_depth = DEFAULT_MAX_DEPTH,
	    .max_overhead_percent = DEFAULT_MAX_OVERHEAD_PERCENT,
	    .inlines = true,
	    .symbols = true,
	    .ring_bytes = OPTIONS_RING_BYTES,
	    .ready_fd = -1,
	};
	struct error *error = parse_all(argc, argv, &options);

	if (!error && (options.help || options.version)) {
		*ret = (struct options){.help = options.help,
		                        .version = options.version,
		                        .dump.asked = options.dump.asked};
		options_deinit(&options);
		return NULL;
	}
	if (!options.writer && options.output)
		options.writer = writer_by_file_name(options.output);
	if (!options.writer)
		options.writer = options.view                          ? &writer_html
		                 : options.ring_ns || options.every_ns ? &writer_pprof
		                                                       : &writer_folded;
	if (!error && !options.dump.asked)
		error = options_check(&options);
	if (error) {
		options_deinit(&options);
		return error;
	}
	*ret = options;
	return NULL;
}

void options_deinit(struct options *options)
{
	for (size_t i = 0; i < N_SELECTION_REGEXES; i++)
		if (options->has_regex[i])
			regfree(&options->regexes[i]);
	memset(options->has_regex, 0, sizeof(options->has_regex));
	free(options->debug_directories);
	options->debug_directories = NULL;
}
