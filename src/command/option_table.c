// SPDX-License-Identifier: MIT
#include "option_table.h"

#include <getopt.h>
#include <stdarg.h>
#include <string.h>

#include "error.h"
#include "memory.h"
#include "options.h"
#include "similar.h"

enum {
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
	return error_create(EXIT_STATUS_USAGE, "%s", message);
}

unsigned int option_row_verbs(const struct option_row *row)
{
	const unsigned int own = row->verbs;

	while (row->long_name)
		row--; // a heading comes first
	return own ? own : row->verbs;
}

static void print_row(FILE *stream, const struct option_row *row)
{
	const char *line = row->help;
	int column;

	if (row->short_name)
		column = fprintf(stream, "  -%c, ", row->short_name);
	else
		column = fprintf(stream, "      ");
	column += fprintf(stream, "--%s%s%s", row->long_name, row->argument ? "=" : "",
	                  row->argument ?: "");
	if (column >= HELP_COLUMN) { // no room beside it
		fputs("\n", stream);
		column = 0;
	}
	while (line) {
		int length = (int)strcspn(line, "\n");

		fprintf(stream, "%*s%.*s\n", HELP_COLUMN - column, "", length, line);
		column = 0;
		line = line[length] ? line + length + 1 : NULL;
	}
}

static bool has_name(const struct option_table *table, const char *name)
{
	for (size_t i = 0; table && i < table->n_rows; i++)
		if (table->rows[i].long_name && strcmp(table->rows[i].long_name, name) == 0)
			return true;
	return false;
}

// Prints a row below its heading, which is printed once.
static void print_below(FILE *stream, const char **heading, const struct option_row *row)
{
	if (*heading)
		fprintf(stream, "\n%s\n", *heading);
	*heading = NULL;
	print_row(stream, row);
}

void option_table_print_own(const struct option_table *own, bool all, FILE *stream)
{
	const char *heading = NULL; // not printed yet

	for (size_t i = 0; i < own->n_rows; i++) {
		const struct option_row *row = &own->rows[i];
		if (!row->long_name)
			heading = row->help;
		else if (all || !row->rare)
			print_below(stream, &heading, row);
	}
}

void option_table_print(const struct option_table *table, const struct option_table *own,
                        unsigned int verbs, FILE *stream)
{
	const char *heading = NULL; // not printed yet

	for (size_t i = 0; i < table->n_rows; i++) {
		const struct option_row *row = &table->rows[i];
		if (!row->long_name)
			heading = row->help;
		else if ((option_row_verbs(row) & verbs) && !has_name(own, row->long_name))
			print_below(stream, &heading, row);
	}
}

void option_table_print_common(const struct option_table *table, const struct option_table *own,
                               unsigned int verbs, FILE *stream)
{
	for (size_t i = 0; i < table->n_rows; i++)
		if ((table->rows[i].common & verbs) && !has_name(own, table->rows[i].long_name))
			print_row(stream, &table->rows[i]);
}

// Two tables, as one.
struct rows {
	const struct option_row *items[OPTION_MAX_ROWS];
	size_t count;
};

// Adds the table's rows but for those whose names `others` has.
static void add_rows(struct rows *rows, const struct option_table *table,
                     const struct option_table *others)
{
	for (size_t i = 0; table && i < table->n_rows && rows->count < OPTION_MAX_ROWS; i++)
		if (table->rows[i].long_name && !has_name(others, table->rows[i].long_name))
			rows->items[rows->count++] = &table->rows[i];
}

// The row of what getopt_long returned: a letter, or LONG_BASE + row. NULL: none.
static const struct option_row *find_row(const struct rows *rows, int code)
{
	if (code >= LONG_BASE && code < LONG_BASE + (int)rows->count)
		return rows->items[code - LONG_BASE];
	for (size_t i = 0; i < rows->count; i++)
		if (code && rows->items[i]->short_name == code)
			return rows->items[i];
	return NULL;
}

// The rows in getopt's words.
static void fill_getopt(const struct rows *rows, char letters[2 * OPTION_MAX_ROWS + 3],
                        struct option longs[OPTION_MAX_ROWS + 1])
{
	// +: stop at the command, whose options are its own; ':': tell a missing argument apart.
	*letters++ = '+';
	*letters++ = ':';
	for (size_t i = 0; i < rows->count; i++) {
		const struct option_row *row = rows->items[i];

		longs[i] = (struct option){
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
	longs[rows->count] = (struct option){0};
}

static struct error *explain_misspelt(const struct rows *rows, const char *word)
{
	const size_t length = strcspn(word, "=");
	_cleanup_free_ char *name = length > 2 ? memory_strndup(word + 2, length - 2) : NULL;
	struct similar similar = {.word = name ?: ""};

	for (size_t i = 0; i < rows->count; i++)
		similar_add(&similar, rows->items[i]->long_name);
	if (!similar.best)
		return option_error("unknown option '%s'", word);
	return option_error("unknown option '%s': did you mean --%s?", word, similar.best);
}

// getopt_long said '?': which mistake was it?
static struct error *explain_unknown(const struct rows *rows, int code, const char *word)
{
	const struct option_row *row = find_row(rows, code);

	if (row)
		return option_error("--%s takes no value: leave '%s' out", row->long_name,
		                    strchr(word, '=') ?: word);
	if (code)
		return option_error("unknown option '-%c'", code);

	_cleanup_free_ char *candidates = memory_strdup("");
	size_t length = strcspn(word, "=");
	size_t n = 0;

	for (size_t i = 0; i < rows->count && length > 2; i++) {
		const char *name = rows->items[i]->long_name;

		if (strncmp(name, word + 2, length - 2) != 0)
			continue;
		char *longer = memory_printf("%s%s--%s", candidates, n++ ? " or " : "", name);
		free(candidates);
		candidates = longer;
	}
	if (n)
		return option_error("option '%s' is ambiguous: %s", word, candidates);
	return explain_misspelt(rows, word);
}

static struct error *apply(struct options *options, const struct option_row *row)
{
	if (row->parse)
		return row->parse(options, optarg);
	*(bool *)((char *)options + row->flag_offset) = row->flag_value;
	return NULL;
}

static void note_use(struct option_use *use, const struct option_row *row)
{
	for (size_t i = 0; i < use->count; i++)
		if (use->rows[i] == row)
			return;
	if (use->count < OPTION_MAX_ROWS)
		use->rows[use->count++] = row;
}

struct error *option_table_parse(const struct option_table *table, const struct option_table *more,
                                 int argc, char **argv, struct options *options,
                                 struct option_use *use)
{
	char letters[2 * OPTION_MAX_ROWS + 3];
	struct option longs[OPTION_MAX_ROWS + 1];
	struct rows rows = {0};
	int code;

	add_rows(&rows, table, NULL);
	add_rows(&rows, more, table);
	fill_getopt(&rows, letters, longs);
	while ((code = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		const struct option_row *row = find_row(&rows, code == ':' ? optopt : code);
		struct error *error;

		if (code == '?' || !row)
			return explain_unknown(&rows, optopt, argv[optind - 1]);
		if (code == ':')
			return option_error("--%s needs a value: --%s=%s", row->long_name,
			                    row->long_name, row->argument);
		note_use(use, row);
		error = apply(options, row);
		if (error || options->help || options->version)
			return error;
	}
	return NULL;
}
