// dump_options: the command line of `profiler dump`.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "time_point.h"

struct error;
struct option_table;
struct options;

struct dump_options {
	bool asked; // it is `profiler dump`; else nothing of this is used
	bool json, all_frames, no_group, no_locks, check;
	int64_t blocked_ns; // --blocked; 0: not given
	long count;         // -n
	int64_t interval_ns;
	struct time_point at; // of a recording
};

// Parses what follows the word "dump" in argv, from optind (getopt(3)) on. `shared`: the table of
// the profiler's own options, of which some are the dump's, too.
struct error *dump_options_parse(const struct option_table *shared, int argc, char **argv,
                                 struct options *options);

// The text of `profiler dump --help`; owned by the caller.
char *dump_options_help(const struct option_table *shared);
