// SPDX-License-Identifier: MIT
// diff_changes: which functions take more or less time than before, and how sure that is.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "change.h"
#include "diff_sides.h"
#include "string_table.h"

struct error;

enum change_verdict {
	CHANGE_CERTAIN, // by more than chance, with all functions that were looked at (change.h)
	CHANGE_NONE,    // the interval lies within the margin
	CHANGE_UNSURE,  // too short to tell
};

struct function_change {
	char *name;                 // owned
	bool own;                   // of the program's own code
	double shares[2];           // of the time of all threads, before and after
	double seconds_a_second[2]; // of one thread; several may be in a function at a time
	enum change_verdict verdict;
	double relative;     // 0.12: 12 % more; infinite if there was nothing before
	double half_width;   // of its 95 % interval; may be infinite
	bool beyond;         // it is certain that it grew by more than --check
	bool may_be_beyond;  // it may have grown by more than the margin
	double more_seconds; // CHANGE_UNSURE: how much longer each side would have to be, about
};

struct diff_changes {
	struct function_change *items; // certain ones first, then own code, then by share
	size_t n, capacity;
	size_t n_certain;
	struct string_table
	    certain;       // their names, and those of functions always in the same stacks
	bool timed;        // there are verdicts: all files are recordings
	double seconds[2]; // of each side
	double margin;     // what counts as no change: 0.05 for up to 5 %
};

// Compares the sides, which were read with timelines, or are folded. *ret is to be freed, even
// after an error.
struct error *diff_changes_find(const struct options *options, struct diff_side *before,
                                struct diff_side *after, struct diff_changes *ret);
void diff_changes_deinit(struct diff_changes *changes);

// Returns true if the function has changed for certain.
bool diff_changes_has(const struct diff_changes *changes, const char *name, size_t length);
