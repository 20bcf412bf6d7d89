// SPDX-License-Identifier: MIT
// verb: what the profiler is to do: what the first word of the command line says, as in
// `profiler report`, or else sampling. A new verb is a row of the table in verb.c, and its bit in
// the rows of options.
#pragma once

#include <stdbool.h>

struct error;
struct option_table;
struct options;

// In the order in which --help names them.
enum verb_id {
	VERB_SAMPLE, // without a word
	VERB_EXPLAIN,
	VERB_DUMP,
	VERB_TOP,
	VERB_VIEW,
	VERB_REPORT,
	VERB_DIFF,
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
	FOR_EXPLAIN = 1 << VERB_EXPLAIN,
	FOR_NOW = FOR_TOP | FOR_DUMP,
	FOR_READING = FOR_REPORT | FOR_DIFF | FOR_VIEW, // read what was sampled before
};

struct verb {
	enum verb_id id;
	const char *name;     // NULL: sampling, which has no name
	const char *operands; // that follow the name, for the list of verbs
	const char *summary;  // its line in that list
	const char *usage;    // first lines of its help: how it is called, and what it does
	const char *examples; // lines of its --help
	const char *statuses; // last line of its --help-all: exit statuses
	const char *instead;  // ends messages about options of other verbs: what to do; NULL: leave
	                      // the option out
	bool takes_command;   // after "--"
	const struct option_table *own_rows; // options that no other verb has; NULL: none

	// take_word takes a word that is not an option; check is called after the last word, and
	// checks that nothing is missing.
	struct error *(*take_word)(struct options *options, const char *word);
	struct error *(*check)(struct options *options);
};

extern const struct verb verbs[N_VERBS];

// Returns the verb of that name; NULL: none.
const struct verb *verb_named(const char *name);

// Returns the verb that a misspelt word may stand for; NULL: none.
const struct verb *verb_similar(const char *word);

// Returns the text of its --help, or with `all` of its --help-all, owned by the caller. `shared`:
// the options of several verbs.
char *verb_help(const struct verb *verb, const struct option_table *shared, bool all);
