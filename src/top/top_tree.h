// SPDX-License-Identifier: MIT
// top_tree: adds up a window's functions for top_model, one by one and as a tree of calls.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sample;
struct top_input;
struct top_model;

// Of a deeper stack, the frames next to the root are left out.
enum { TOP_MAX_FRAMES = 512 };

// Lists those of a sample's whole stack as it is shown (blocked_leaf.h), leaf first, and the lines
// in them (0: not known); the last entry tells why the stack is not whole, if it is not. Returns
// how many: 1 to TOP_MAX_FRAMES.
size_t top_frames(const struct top_input *input, uint32_t sample, uint32_t *ret_ids,
                  uint32_t *ret_lines);

// True if the node stands for all stacks without the program's own functions.
bool top_is_elsewhere(const struct top_input *input, uint32_t id);

// Set model->functions and model->nodes from the window's sums, of which there is one for each
// sample.
void top_find_functions(struct top_model *model, const struct sample *sums, size_t n);
void top_find_tree(struct top_model *model, const struct sample *sums, size_t n);
