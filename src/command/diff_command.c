// SPDX-License-Identifier: MIT
#include "diff_command.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diff_changes.h"
#include "diff_folded.h"
#include "diff_sides.h"
#include "diff_table.h"
#include "error.h"
#include "memory.h"
#include "option_table.h"
#include "options.h"
#include "output.h"
#include "profile_merge.h"
#include "quantity.h"
#include "show.h"
#include "summary.h"
#include "verb.h"
#include "weights.h"
#include "write_report.h"
#include "writer.h"

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

// What is compared.
struct diff {
	const struct options *options;
	struct diff_side before, after;
	struct diff_changes changes; // if they are asked for
};

// Takes the end off the text's length, if it ends like that.
static size_t without_end(const char *text, size_t length, const char *end)
{
	const size_t n = strlen(end);

	return length > n && memcmp(text + length - n, end, n) == 0 ? length - n : length;
}

// Returns the length of a frame's function, without what folded stacks add: "f (file.c:12)_[i]".
static size_t function_length(const char *frame, size_t length)
{
	length = without_end(frame, length, "_[i]");
	if (length == 0 || frame[length - 1] != ')')
		return length;
	const char *open = memrchr(frame, '(', length);
	return open && open > frame + 1 && open[-1] == ' ' ? (size_t)(open - 1 - frame) : length;
}

// True if the stack's innermost function has changed for certain.
static bool has_changed(const void *context, const char *stack, size_t length)
{
	while (length > 0) {
		const char *separator = memrchr(stack, ';', length);
		const char *frame = separator ? separator + 1 : stack;
		const size_t size = length - (size_t)(frame - stack);
		if (!folded_is_kernel(frame, size))
			return diff_changes_has(context, frame, without_end(frame, size, "_[i]")) ||
			       diff_changes_has(context, frame, function_length(frame, size));
		length = separator ? (size_t)(separator - stack) : 0;
	}
	return false;
}

static struct error *write_folded(struct diff *diff, FILE *stream)
{
	struct diff_texts texts;
	uint64_t n_bad = 0;
	struct error *error = diff_texts_init(diff->options, &diff->before, &diff->after, &texts);

	if (diff->options->diff.changed_only) {
		texts.diff.differs = has_changed;
		texts.diff.context = &diff->changes;
	}
	if (!error)
		error = diff_folded(&texts.diff, stream, &n_bad);
	diff_texts_deinit(&texts);
	if (!error)
		diff_print_bad(n_bad);
	return error;
}

static struct error *write_page(struct diff *diff, FILE *stream)
{
	const struct report_source before = diff_input_source(diff->before.items[0]);
	const struct report_source after = diff_input_source(diff->after.items[0]);

	return write_report_diff(diff->options, &before, &after, stream);
}

static double wall_of(const struct diff_side *side)
{
	double wall_ns = 0;

	for (size_t i = 0; i < side->count; i++) {
		const struct profile *profile = &side->items[i]->view.part;
		for (size_t j = 0; j < profile->n_samples; j++)
			wall_ns += (double)profile->samples[j].wall_ns;
	}
	return wall_ns;
}

static void add_side(struct merged *merged, const struct diff_side *side, double weight)
{
	for (size_t i = 0; i < side->count; i++) {
		const struct diff_input *input = side->items[i];
		struct weighed weighed;
		weighed_init(&weighed, &input->view.part);
		merged_add(merged, &weighed.profile, &input->recording.modules,
		           &input->recording.symbols, weight);
		weighed_deinit(&weighed);
	}
}

static struct error *write_sums(struct diff *diff, FILE *stream)
{
	const double wall_before = wall_of(&diff->before);
	const double weight =
	    diff->options->normalize && wall_before > 0 ? wall_of(&diff->after) / wall_before : 1;
	const struct recording *after = &diff->after.items[0]->recording;
	struct merged merged = {0};

	add_side(&merged, &diff->before, -weight);
	add_side(&merged, &diff->after, 1);
	struct error *error = write_report(diff->options,
	                                   &(struct report_source){
	                                       .part = &merged.profile,
	                                       .modules = &merged.modules,
	                                       .symbols = &merged.symbols,
	                                       .pid = after->pid,
	                                       .children = after->children,
	                                   },
	                                   stream);
	merged_deinit(&merged);
	return error;
}

// The name of a file of the side that is folded.
static const char *folded_name(const struct diff_side *side)
{
	for (size_t i = 0; i < side->count; i++)
		if (!side->items[i]->is_recording)
			return side->items[i]->name;
	return NULL;
}

static struct error *refuse_folded(const struct diff *diff)
{
	const char *name = folded_name(&diff->before) ?: folded_name(&diff->after);
	const struct diff_options *options = &diff->options->diff;

	if (name && (options->checks || options->changed_only))
		return error_create(EXIT_STATUS_USAGE,
		                    "diff: %s is no recording and has no times, which --%s "
		                    "needs: give recordings",
		                    name, options->checks ? "check" : "changed-only");
	if (name && diff->options->writer != &writer_folded)
		return error_create(EXIT_STATUS_USAGE,
		                    "diff: %s is no recording, so the difference can only be "
		                    "folded: use -f folded, or two recordings",
		                    name);
	return NULL;
}

static struct error *write_profile(struct diff *diff, struct output *output)
{
	const struct writer *writer = diff->options->writer;
	FILE *stream = output_stream(output);
	struct error *error = writer == &writer_folded ? write_folded(diff, stream)
	                      : writer == &writer_html ? write_page(diff, stream)
	                                               : write_sums(diff, stream);

	return error ? error : output_finish(output, NULL);
}

static struct error *write_file(struct diff *diff, bool quiet)
{
	const struct options *options = diff->options;
	struct output *output = NULL;
	struct error *error = output_open(options->output ?: "-", options->writer->binary, &output);

	if (!error)
		error = write_profile(diff, output);
	if (!error && !quiet)
		summary_print_output(options->writer, output_name(output));
	output_destroy(output);
	return error;
}

static struct error *write_all(struct diff *diff, bool quiet)
{
	const struct options *options = diff->options;
	const bool table = options->diff.table;
	struct error *error = refuse_folded(diff);

	if (!error && (table || options->diff.changed_only))
		error = diff_changes_find(options, &diff->before, &diff->after, &diff->changes);
	if (!error && table)
		diff_table_print(options, &diff->changes, stdout);
	if (!error && table && (fflush(stdout) != 0 || ferror(stdout)))
		error = show_no_reader();
	if (!error && (!table || options->output))
		error = write_file(diff, quiet);
	return error ? error : diff_table_check(options, &diff->changes);
}

struct error *diff_command(const struct options *asked)
{
	struct options options = *asked;
	struct diff diff = {.options = &options};
	const bool timed = options.diff.table || options.diff.changed_only;

	options.quiet = true; // sums of differences mean nothing
	struct error *error = diff_side_read(&options, &options.diff.before, timed, &diff.before);
	if (!error)
		error = diff_side_read(&options, &options.diff.after, timed, &diff.after);
	if (!error)
		error = write_all(&diff, asked->quiet);
	diff_side_deinit(&diff.before);
	diff_side_deinit(&diff.after);
	diff_changes_deinit(&diff.changes);
	return error;
}
