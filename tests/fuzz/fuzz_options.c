// SPDX-License-Identifier: MIT
// The command line: one argument for each line of the input.
#include "error.h"
#include "fuzz.h"
#include "memory.h"
#include "options.h"
#include "verb.h"

enum { MAX_ARGUMENTS = 64 };

// regcomp(3) of the C library takes memory without bound for many repetitions. The pattern is the
// user's, no target's.
static bool is_bomb(const char *text)
{
	size_t repetitions = 0;

	for (const char *at = text; *at; at++)
		repetitions += strchr("*+?{", *at) != NULL;
	return repetitions > 3;
}

// push has any number of files, and the agent chooses its processes itself.
static bool is_of_one(const struct options *options)
{
	return options->verb->id != VERB_PUSH && options->verb->id != VERB_AGENT;
}

// These write what they write.
static bool has_no_format(const struct options *options)
{
	return (FOR_NOW | FOR_PUSH | FOR_AGENT) & 1u << options->verb->id;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = memory_strndup((const char *)data, size);
	char *argv[MAX_ARGUMENTS + 2] = {"profiler"}, *save = NULL;
	struct options options;
	int argc = 1;

	if (is_bomb(text))
		return 0;
	for (char *line = strtok_r(text, "\n", &save); line && argc <= MAX_ARGUMENTS;
	     line = strtok_r(NULL, "\n", &save))
		argv[argc++] = line;
	_cleanup_error_ struct error *error = options_parse(argc, argv, &options);
	if (error) {
		expect(error_status(error) == EXIT_STATUS_USAGE && error_message(error)[0]);
		return 0;
	}
	if (!options.help && !options.version) {
		const int n =
		    (options.pid > 0) + (options.command != NULL) + (options.recording != NULL);
		expect(n == 1 || !is_of_one(&options));
		expect(options.writer || has_no_format(&options));
		expect(options.frequency_hz >= 1 && options.frequency_hz <= 10000);
		expect(options.duration_ns >= 0 && options.max_depth > 0);
	}
	options_deinit(&options);
	return 0;
}
