// SPDX-License-Identifier: MIT
// diff_folded: writes two folded profiles side by side, as difffolded.pl does for flamegraph.pl.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "string_table.h"

struct error;

// One of the two profiles; borrowed.
struct folded_text {
	const char *name; // for messages
	const char *text;
	size_t size;
};

// One side: texts that are added up.
struct folded_side {
	const struct folded_text *texts;
	size_t n;
};

// Tells whether a stack, which is not terminated, may differ; NULL: any may.
typedef bool folded_differs_fn(const void *context, const char *stack, size_t length);

struct folded_diff {
	struct folded_side before, after;
	bool normalize; // scale the counts of before to the total of after, rounded down
	folded_differs_fn *differs; // of others both counts are that of after
	const void *context;
};

// Writes "stack COUNT_BEFORE COUNT_AFTER" for each stack of either side, sorted by stack. Leaves
// out lines that are not folded stacks; *ret_bad is how many there are. An error if a text has
// nothing but those; an empty text is a profile without samples.
struct error *diff_folded(const struct folded_diff *diff, FILE *stream, uint64_t *ret_bad);

struct folded_function {
	double counts[2]; // of before and after, with all that the function calls
};

struct folded_functions {
	struct string_table names;
	struct folded_function *items; // by the number of the name
	size_t count, capacity;
	double totals[2];
};

// Adds up the functions of both sides' stacks, but for the kernel's. *ret is the caller's, even
// after an error.
struct error *folded_functions_read(const struct folded_diff *diff, struct folded_functions *ret,
                                    uint64_t *ret_bad);

// Returns true if the frame is one of the kernel's.
bool folded_is_kernel(const char *frame, size_t length);
void folded_functions_deinit(struct folded_functions *functions);
