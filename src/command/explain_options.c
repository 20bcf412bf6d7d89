// SPDX-License-Identifier: MIT
#include "explain_options.h"

#include "clock.h"
#include "dump_options.h"
#include "error.h"
#include "memory.h"
#include "option_table.h"
#include "options.h"
#include "verb.h"
#include "write_explain.h"

enum { DEFAULT_S = 10 };

static struct error *parse_json(struct options *options, const char *value)
{
	(void)value;
	options->writer = &writer_explain_json;
	return NULL;
}

static struct error *parse_markdown(struct options *options, const char *value)
{
	(void)value;
	options->writer = &writer_explain_markdown;
	return NULL;
}

static const struct option_row own_rows[] = {
    {.help = "How it is told:", .verbs = FOR_EXPLAIN},
    {.long_name = "json", .help = "print JSON", .parse = parse_json},
    {.long_name = "markdown", .help = "print Markdown", .parse = parse_markdown},
};

const struct option_table explain_rows = {.rows = own_rows, .n_rows = array_size(own_rows)};

struct error *explain_take_word(struct options *options, const char *word)
{
	return dump_take_word(options, word);
}

struct error *explain_check(struct options *options)
{
	if (!options->pid && !options->recording)
		return option_error(
		    "explain: give a process: profiler explain PID; to run a command "
		    "of that name: profiler -- explain");
	if (!options->writer)
		options->writer = &writer_explain;
	if (options->pid && !options->duration_ns)
		options->duration_ns = DEFAULT_S * NS_PER_SECOND;
	options->blame = true;
	options->quiet = true;
	return NULL;
}
