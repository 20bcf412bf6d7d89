// SPDX-License-Identifier: MIT
// diff_folded: writes two folded profiles side by side, as difffolded.pl does for flamegraph.pl.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct error;

// One of the two profiles; borrowed.
struct folded_text {
	const char *name; // for messages
	const char *text;
	size_t size;
};

// Writes "stack COUNT_A COUNT_B" for each stack of either text, sorted by stack. With `normalize`
// the counts of a are scaled, and rounded down, so that both have the same total. Leaves out lines
// that are not folded stacks; *ret_bad is how many there are. An error if one has nothing but
// those; an empty text is a profile without samples.
struct error *diff_folded(const struct folded_text *a, const struct folded_text *b, bool normalize,
                          FILE *stream, uint64_t *ret_bad);
