// SPDX-License-Identifier: MIT
// diff_folded: writes two folded profiles side by side, as difffolded.pl does for flamegraph.pl.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Writes "stack COUNT_A COUNT_B" for each stack of either text, sorted by stack. With `normalize`
// the counts of a are scaled, and rounded down, so that both have the same total. Leaves out lines
// that are not folded stacks, and returns how many there are.
uint64_t diff_folded(const char *a, size_t a_size, const char *b, size_t b_size, bool normalize,
                     FILE *stream);
