// option_table: what parses a command line, and prints the help, by a table of options.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct error;
struct options;

// A row of the table of options: how it is written, what it does and what --help says of it.
struct option_row {
	char short_name;       // 0: none
	const char *long_name; // NULL: a heading of the help, in `help`
	const char *argument;  // its name in the help; NULL: takes none
	const char *help;      // lines, without a newline at the end
	size_t flag_offset;    // without `parse`: the bool in struct options to set
	bool flag_value;       // to what; of a heading: what follows is for sampling alone
	struct error *(*parse)(struct options *options, const char *value);
};

struct option_table {
	const struct option_row *rows; // the first is a heading
	size_t n_rows;
};

// A mistake of the user's (EXIT_STATUS_USAGE), in printf's manner; it says what to do.
struct error *option_error(const char *format, ...)
    __attribute__((format(printf, 1, 2), returns_nonnull));

// Prints the rows for --help.
void option_table_print(const struct option_table *table, FILE *stream);

// Parses the options from argv[optind] (getopt(3); 0: anew) on, up to the first other word, or
// --help or --version. *sampling becomes one that is for sampling alone, if there was one.
struct error *option_table_parse(const struct option_table *table, int argc, char **argv,
                                 struct options *options, const struct option_row **sampling);
