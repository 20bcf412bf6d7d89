// SPDX-License-Identifier: MIT
// diff_command: `profiler diff A B`: shows what has changed from one recording, or folded profile,
// to another.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct option_table;

struct error;
struct options;

// Writes folded stacks with two columns (diff_folded.h), pprof with A's samples negative, or a page
// that compares the two.
struct error *diff_command(const struct options *options);

// The command line of `profiler diff`.

// The files of one side, as given: a path, or of a recording PATH@FROM..TO.
struct diff_files {
	const char **items; // NULL-terminated; the strings are argv's
	size_t count, capacity;
};

struct diff_options {
	struct diff_files before, after;
	struct diff_files *list; // what more words go to; NULL: the first to before
	bool table;              // print the table of functions
	bool changed_only;       // folded: only what has changed for certain differs
	bool checks;
	double check; // 0.02 for --check=2%
};

// The options of this verb alone.
extern const struct option_table diff_rows;

// For struct verb: diff_take_word takes a file; diff_check checks that there are two sides.
struct error *diff_take_word(struct options *options, const char *word);
struct error *diff_check(struct options *options);

// Frees what the options own.
void diff_options_deinit(struct diff_options *diff);
