// SPDX-License-Identifier: MIT
#include "diff_options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "memory.h"
#include "option_table.h"
#include "options.h"
#include "quantity.h"
#include "verb.h"

enum { MAX_FILES = 1000, MAX_CHECK_PERCENT = 1000 };

static struct error *add_file(struct diff_files *files, const char *path)
{
	if (files->count >= MAX_FILES)
		return option_error("diff: '%s' is one file too many: give at most %d a side", path,
		                    MAX_FILES);
	*array_push(files->items, files->count, files->capacity) = path;
	return NULL;
}

static struct error *parse_before(struct options *options, const char *value)
{
	options->diff.list = &options->diff.before;
	return add_file(options->diff.list, value);
}

static struct error *parse_after(struct options *options, const char *value)
{
	options->diff.list = &options->diff.after;
	return add_file(options->diff.list, value);
}

static struct error *parse_check(struct options *options, const char *value)
{
	double percent;
	const char *rest = quantity_parse_decimal(value, &percent);

	if (!rest || (rest[0] && strcmp(rest, "%") != 0) || percent > MAX_CHECK_PERCENT)
		return option_error("--check: '%s' is not a percentage, such as 2%%", value);
	options->diff.checks = true;
	options->diff.check = percent / 100;
	return NULL;
}

// clang-format off
#define FLAG(name, field, text)                                                                    \
	{.long_name = (name), .help = (text), .flag_offset = offsetof(struct options, diff.field), \
	 .flag_value = true, .common = FOR_DIFF}
#define VALUE(name, arg, function, text)                                                           \
	{.long_name = (name), .argument = (arg), .help = (text), .parse = (function),              \
	 .common = FOR_DIFF}

static const struct option_row own_rows[] = {
	{.help = "What is compared:", .verbs = FOR_DIFF},
	VALUE("before", "FILE", parse_before, "several recordings of A, then..."),
	VALUE("after", "FILE", parse_after, "...of B"),
	FLAG("table", table, "print which functions changed, and how sure that is:\n"
	     "the default on a terminal"),
	VALUE("check", "PERCENT", parse_check,
	      "exit with 10 if a function got slower by more than\n"
	      "this for certain, else with 11 if it is too short to\n"
	      "tell; prints the table"),
	FLAG("changed-only", changed_only, "folded: show no difference where none is certain"),
};
// clang-format on

const struct option_table diff_rows = {.rows = own_rows, .n_rows = array_size(own_rows)};

struct error *diff_take_word(struct options *options, const char *word)
{
	struct diff_options *diff = &options->diff;

	if (diff->list)
		return add_file(diff->list, word);
	if (diff->before.count > 0 && diff->after.count > 0)
		return option_error(
		    "diff: give only two files, '%s' is one more, or several a side "
		    "with --before A... --after B...",
		    word);
	return add_file(diff->before.count == 0 ? &diff->before : &diff->after, word);
}

struct error *diff_check(struct options *options)
{
	struct diff_options *diff = &options->diff;

	if (diff->before.count == 0 || diff->after.count == 0)
		return option_error(
		    "diff: give two files to compare: profiler diff A B; to run a command "
		    "of that name: profiler -- diff");
	options->recording = diff->before.items[0];
	if (diff->checks)
		diff->table = true;
	if (!options->output && !options->writer && !diff->changed_only && isatty(STDOUT_FILENO))
		diff->table = true;
	return NULL;
}

void diff_options_deinit(struct diff_options *diff)
{
	free(diff->before.items);
	free(diff->after.items);
	*diff = (struct diff_options){0};
}
