// SPDX-License-Identifier: MIT
// option_table: what parses a command line, and prints the help, by a table of options.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct error;
struct options;

enum { OPTION_MAX_ROWS = 128 };

// A row of the table of options: how it is written, what it does and what --help says of it.
struct option_row {
	char short_name;       // 0: none
	const char *long_name; // NULL: a heading of the help, in `help`
	const char *argument;  // its name in the help; NULL: takes none
	const char *help;      // lines, without a newline at the end
	unsigned int verbs;    // that take it, as bits (verb.h); 0: those of the heading above
	size_t flag_offset;    // without `parse`: the bool in struct options to set
	bool flag_value;       // to what
	struct error *(*parse)(struct options *options, const char *value);
};

struct option_table {
	const struct option_row *rows; // the first is a heading
	size_t n_rows;
};

// A mistake of the user's (EXIT_STATUS_USAGE), in printf's manner; it says what to do.
struct error *option_error(const char *format, ...)
    __attribute__((format(printf, 1, 2), returns_nonnull));

// The options that a command line has used.
struct option_use {
	const struct option_row *rows[OPTION_MAX_ROWS]; // borrowed from the tables
	size_t count;                                   // repeated ones count once
};

// Prints the rows for --help that are for these verbs, as bits.
void option_table_print(const struct option_table *table, unsigned int verbs, FILE *stream);

// The bits of the verbs that take the row of a table.
unsigned int option_row_verbs(const struct option_row *row);

// Parses the options from argv[optind] (getopt(3); 0: anew) on, up to the first other word, or
// --help or --version. They may be of both tables; `more` may be NULL.
struct error *option_table_parse(const struct option_table *table, const struct option_table *more,
                                 int argc, char **argv, struct options *options,
                                 struct option_use *use);
