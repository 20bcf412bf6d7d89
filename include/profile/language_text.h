// SPDX-License-Identifier: MIT
// language_text: what a language's programs are known by in text: the names of functions and files
// in a profile, and the words that the language has for what it is. It needs no process, so it is
// the same for a recording. Each language has its own in src/languages.
//
// A list ends with NULL, or with a rule whose text is NULL. A language leaves out what it has not.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "wait_kind.h"

struct code_place; // own_code.h
struct run_stats;

// Whose a function is.
enum code_owner {
	CODE_OF_NOBODY, // not of this language
	CODE_OF_PROGRAM,
	CODE_OF_LANGUAGE, // of its virtual machine, standard library or packages
};

struct wait_rule {
	// Without underscores in front. "*" at the end: begins so. "NAME@END": the path of its
	// source ends so.
	const char *name;
	enum wait_name class;
};

struct reason_rule {
	const char *begin; // of the reason why a task waits
	enum wait_kind kind;
};

// How the language calls its tasks.
struct task_words {
	const char *one, *many;
	const char *id; // of its number, as in a label
};

struct language_text {
	// Functions that wait (wait_kind.h); of the second list it is enough that a name contains
	// one.
	const struct wait_rule *waits, *wait_parts;
	const struct reason_rule *reasons;
	// How a wait's descriptor begins that is a lock.
	const char *const *locks;
	// Likewise, of the one lock that a thread needs to run at all; NULL: it has none.
	const char *whole_lock;
	// Reasons for which a task waits until another one takes what it gives.
	const char *const *sends;
	// Functions that wait for a free place of a pool; it is enough that a name contains one. Or
	// "NAME@END": a whole name, and how the path of its source ends.
	const char *const *pools;
	// Likewise, that wait for room in a queue, and for what another task computes.
	const char *const *gives, *const *results;
	// Likewise, of the garbage collector, or that wait for it; that allocate, in so far as they
	// are seen; and with which a program has its garbage collected at once.
	const char *const *collects, *const *allocates, *const *asks_to_collect;
	// Of the first, those that look at all memory, not just at what is new; and those that do
	// so only while a CPU has nothing else to do for the program.
	const char *const *collects_all, *const *collects_spare;
	// How the names of threads begin that do nothing but collect garbage.
	const char *const *collectors;
	// Likewise, that look up the address of a host.
	const char *const *lookups;
	// Likewise, that wait for a child process, and for a server's answer, in whatever way.
	const char *const *children, *const *answers;

	// Likewise, with which a virtual machine begins to run the program's own code, which may
	// have no names.
	const char *const *enters;

	// The program's own code (own_code.h): names of modules with the language's own code
	// (fnmatch(3)), what paths of such modules contain, and functions that it has compiled for
	// itself (fnmatch(3)).
	const char *const *files, *const *folders, *const *inner;
	// True if a file of source or of machine code comes with the language or its packages.
	bool (*is_packaged)(const char *path);
	enum code_owner (*owner)(const struct code_place *place);

	// Returns a shorter name of a function (short_name.h), as a new string; NULL: it is none of
	// the language's, or not to be shortened.
	char *(*shorten)(const char *name);

	const struct task_words *tasks;

	// For a run's summary: tells what was not read; in how many stacks something lacked; and,
	// where figures are asked for, how it was read.
	void (*print_unread)(const struct run_stats *stats, FILE *stream);
	void (*print_faults)(const struct run_stats *stats, FILE *stream);
	void (*print_figures)(const struct run_stats *stats, FILE *stream);
};

// All of them; NULL at the end. Defined in src/languages.
extern const struct language_text *const language_texts[];

// True if a wait's descriptor tells of a lock that a thread of the language needs to run at all.
bool language_text_is_whole_lock(const char *descriptor);

// How tasks are called: by the language that has some.
const struct task_words *language_task_words(void);
static inline const char *language_tasks(uint64_t n)
{
	return n == 1 ? language_task_words()->one : language_task_words()->many;
}
