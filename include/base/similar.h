// SPDX-License-Identifier: MIT
// similar: finds the name that a misspelt word may stand for.
#pragma once

#include <stddef.h>

// The best name so far, and how far the word is from it.
struct similar {
	const char *word;
	const char *best; // borrowed; NULL: none is close enough
	size_t distance;
};

// Takes the name if it is closer to the word than the best one. Of a name of less than 5 characters
// one may be wrong, of others two: inserted, missing, replaced, or swapped with the next one.
void similar_add(struct similar *similar, const char *name);
