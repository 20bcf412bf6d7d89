// SPDX-License-Identifier: MIT
// top_tree: adds up a window's functions for top_model, one by one and as a tree of calls.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sample;
struct stack;
struct top_input;
struct top_model;

// Of a deeper stack, the frames next to the root are left out.
enum { TOP_MAX_FRAMES = 512 };

// Lists the functions (ids for top_function_name) at one location, innermost first. Returns how
// many: 1 to TOP_MAX_FRAMES.
size_t top_frames_at(const struct top_input *input, uint32_t location,
                     uint32_t ret[TOP_MAX_FRAMES]);

// Returns the sample's stack as it is shown (blocked_leaf.h).
struct stack top_stack_of(const struct top_input *input, uint32_t sample);

// Lists those of the whole stack, leaf first; the last entry tells why the stack is not whole, if
// it is not. Returns how many: 1 or more.
size_t top_frames(const struct top_input *input, const struct stack *stack,
                  uint32_t ret[TOP_MAX_FRAMES]);

// Returns the position, in that list, of the innermost function of the program's own (own_code.h);
// one beyond the list: there is none.
size_t top_own_frame(const struct top_input *input, const struct stack *stack);

// Set model->functions and model->nodes from the window's sums, of which there is one for each
// sample.
void top_find_functions(struct top_model *model, const struct sample *sums, size_t n);
void top_find_tree(struct top_model *model, const struct sample *sums, size_t n);
