// SPDX-License-Identifier: MIT
// python_cut: stacks with more calls than are shown.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct python;
struct unwound;

// Returns the location that stands for calls which are left out.
uint32_t python_more_calls(const struct python *python);

// Leaves at most n_max of the merged stack's locations (python->locations): of a whole stack the
// innermost and the outermost ones, and returns true if some were left out; else the innermost
// ones, and *stack tells that it is cut.
bool python_cut(struct python *python, size_t n_max, struct unwound *stack);
