#include "option_table.h"

#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#include "error.h"
#include "memory.h"
#include "options.h"

enum {
	MAX_ROWS = 128,
	LONG_BASE = 256, // getopt_long returns LONG_BASE + row for a long option, else the letter
	HELP_COLUMN = 26,
};

struct error *option_error(const char *format, ...)
{
	_cleanup_free_ char *message = NULL;
	va_list args;

	va_start(args, format);
	message = memory_vprintf(format, args);
	va_end(args);
	return error_create(EXIT_STATUS_USAGE, "%s (see profiler --help)", message);
}

static void print_row(FILE *stream, const struct option_row *row)
{
	const char *line = row->help;
	int column;

	if (!row->long_name) {
		fprintf(stream, "\n%s\n", row->help);
		return;
	}
	if (row->short_name)
		column = fprintf(stream, "  -%c, ", row->short_name);
	else
		column = fprintf(stream, "      ");
	column += fprintf(stream, "--%s%s%s", row->long_name, row->argument ? "=" : "",
	                  row->argument ?: "");
	while (line) {
		int length = (int)strcspn(line, "\n");

		fprintf(stream, "%*s%.*s\n", HELP_COLUMN - column, "", length, line);
		column = 0;
		line = line[length] ? line + length + 1 : NULL;
	}
}

void option_table_print(const struct option_table *table, FILE *stream)
{
	for (size_t i = 0; i < table->n_rows; i++)
		print_row(stream, &table->rows[i]);
}

// The row of what getopt_long returned: a letter, or LONG_BASE + row. NULL: none.
static const struct option_row *find_row(const struct option_table *table, int code)
{
	if (code >= LONG_BASE && code < LONG_BASE + (int)table->n_rows)
		return &table->rows[code - LONG_BASE];
	for (size_t i = 0; i < table->n_rows; i++)
		if (code && table->rows[i].short_name == code)
			return &table->rows[i];
	return NULL;
}

static bool is_for_sampling(const struct option_row *row)
{
	while (row->long_name)
		row--; // a heading comes first
	return row->flag_value;
}

// The table in getopt's words.
static void fill_getopt(const struct option_table *table, char letters[2 * MAX_ROWS + 3],
                        struct option longs[MAX_ROWS + 1])
{
	size_t n = 0;

	// +: stop at the command, whose options are its own; ':': tell a missing argument apart.
	*letters++ = '+';
	*letters++ = ':';
	for (size_t i = 0; i < table->n_rows && i < MAX_ROWS; i++) {
		const struct option_row *row = &table->rows[i];

		if (!row->long_name)
			continue;
		longs[n++] = (struct option){
		    .name = row->long_name,
		    .has_arg = row->argument ? required_argument : no_argument,
		    .val = LONG_BASE + (int)i,
		};
		if (!row->short_name)
			continue;
		*letters++ = row->short_name;
		if (row->argument)
			*letters++ = ':';
	}
	*letters = '\0';
	longs[n] = (struct option){0};
}

// getopt_long said '?': which mistake was it?
static struct error *explain_unknown(const struct option_table *table, int code, const char *word)
{
	const struct option_row *row = find_row(table, code);

	if (row)
		return option_error("--%s takes no value: leave '%s' out", row->long_name,
		                    strchr(word, '=') ?: word);
	if (code)
		return option_error("unknown option '-%c'", code);

	_cleanup_free_ char *candidates = memory_strdup("");
	size_t length = strcspn(word, "=");
	size_t n = 0;

	for (size_t i = 0; i < table->n_rows && length > 2; i++) {
		const char *name = table->rows[i].long_name;

		if (!name || strncmp(name, word + 2, length - 2) != 0)
			continue;
		char *longer = memory_printf("%s%s--%s", candidates, n++ ? " or " : "", name);
		free(candidates);
		candidates = longer;
	}
	if (n)
		return option_error("option '%s' is ambiguous: %s", word, candidates);
	return option_error("unknown option '%s'", word);
}

static struct error *apply(struct options *options, const struct option_row *row)
{
	if (row->parse)
		return row->parse(options, optarg);
	*(bool *)((char *)options + row->flag_offset) = row->flag_value;
	return NULL;
}

struct error *option_table_parse(const struct option_table *table, int argc, char **argv,
                                 struct options *options, const struct option_row **sampling)
{
	char letters[2 * MAX_ROWS + 3];
	struct option longs[MAX_ROWS + 1];
	int code;

	fill_getopt(table, letters, longs);
	while ((code = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		const struct option_row *row = find_row(table, code == ':' ? optopt : code);
		struct error *error;

		if (code == '?' || !row)
			return explain_unknown(table, optopt, argv[optind - 1]);
		if (code == ':')
			return option_error("--%s needs a value: --%s=%s", row->long_name,
			                    row->long_name, row->argument);
		if (is_for_sampling(row))
			*sampling = row;
		error = apply(options, row);
		if (error || options->help || options->version)
			return error;
	}
	return NULL;
}
