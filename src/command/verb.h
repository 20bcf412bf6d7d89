// SPDX-License-Identifier: MIT
// verb: what the profiler is to do: sampling, or what the first word of the command line says, as
// in `profiler report`. A new verb is a row of the table in verb.c, and its bit in the options'
// rows.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct error;
struct option_table;
struct options;

// In the order in which --help names them.
enum verb_id {
	VERB_SAMPLE, // without a word
	VERB_REPORT,
	VERB_DIFF,
	VERB_VIEW,
	VERB_TOP,
	VERB_DUMP,
	VERB_PUSH,
	VERB_AGENT,
	N_VERBS,
};

// As bits, for struct option_row.
enum {
	FOR_SAMPLE = 1 << VERB_SAMPLE,
	FOR_REPORT = 1 << VERB_REPORT,
	FOR_DIFF = 1 << VERB_DIFF,
	FOR_VIEW = 1 << VERB_VIEW,
	FOR_TOP = 1 << VERB_TOP,
	FOR_DUMP = 1 << VERB_DUMP,
	FOR_PUSH = 1 << VERB_PUSH,
	FOR_AGENT = 1 << VERB_AGENT,
	FOR_NOW = FOR_TOP | FOR_DUMP,
	FOR_READING = FOR_REPORT | FOR_DIFF | FOR_VIEW, // of what was sampled before
};

struct verb {
	enum verb_id id;
	const char *name;     // NULL: none, sampling
	const char *operands; // that follow it, for the list of verbs
	const char *summary;  // a line of that list
	const char *usage;    // lines of its own help: how it is called, and what it does
	const char *statuses; // the last lines of it: exit statuses
	const char *instead; // for whom an option is that is not for it; NULL: nobody in particular
	bool takes_command;  // after "--"
	const struct option_table *own_rows; // options that no other verb has; NULL: none

	// Takes a word that is no option; in the end looks whether all is there that is needed.
	struct error *(*take_word)(struct options *options, const char *word);
	struct error *(*check)(struct options *options);
};

extern const struct verb verbs[N_VERBS];

// The verb of that name; NULL: none.
const struct verb *verb_named(const char *name);

// The text of its --help, with `shared`, the options of several verbs; owned by the caller.
char *verb_help(const struct verb *verb, const struct option_table *shared);
