// SPDX-License-Identifier: MIT
// option_table: parses a command line and prints the help, by a table of options.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct error;
struct options;

enum { OPTION_MAX_ROWS = 128 };

// A row of the table of options: how it is written, what it does and what the help says of it.
struct option_row {
	char short_name;       // 0: none
	const char *long_name; // NULL: the row is a heading, whose text is in `help`
	const char *argument;  // its name in the help; NULL: takes none
	const char *help;      // lines, without a newline at the end
	unsigned int verbs;    // bits of verbs that take it (verb.h); 0: as the heading above
	unsigned int common;   // bits of verbs whose --help shows it; --help-all shows it for all
	size_t flag_offset;    // without `parse`: the bool in struct options that is set...
	bool flag_value;       // ...to this
	bool rare;             // a verb's own: only --help-all shows it
	struct error *(*parse)(struct options *options, const char *value);
};

struct option_table {
	const struct option_row *rows; // the first row is a heading
	size_t n_rows;
};

// Makes an error (EXIT_STATUS_USAGE) from a printf format, for a mistake of the user's; the message
// says what to do. options_parse adds which help says more.
struct error *option_error(const char *format, ...)
    __attribute__((format(printf, 1, 2), returns_nonnull));

// The options that a command line has used.
struct option_use {
	const struct option_row *rows[OPTION_MAX_ROWS]; // each once; borrowed from the tables
	size_t count;
};

// Prints the rows of a verb's own table, below their headings; rare ones only if `all`.
void option_table_print_own(const struct option_table *own, bool all, FILE *stream);

// Prints the rows of --help-all for these verbs, given as bits, below their headings; but not those
// that `own` has as well, in other words (it may be NULL).
void option_table_print(const struct option_table *table, const struct option_table *own,
                        unsigned int verbs, FILE *stream);

// Prints the rows that --help shows for these verbs, likewise, without headings.
void option_table_print_common(const struct option_table *table, const struct option_table *own,
                               unsigned int verbs, FILE *stream);

// Returns the bits of the verbs that take a table's row.
unsigned int option_row_verbs(const struct option_row *row);

// Parses the options from argv[optind] on (getopt(3); optind 0: from the start), up to the first
// other word, or --help or --version. Takes options of both tables; `more` may be NULL. Of rows
// with the same name that of `table` counts.
struct error *option_table_parse(const struct option_table *table, const struct option_table *more,
                                 int argc, char **argv, struct options *options,
                                 struct option_use *use);
