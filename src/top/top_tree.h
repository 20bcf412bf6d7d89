// SPDX-License-Identifier: MIT
// top_tree: the functions of a window, for top_model: by themselves, and as a tree of calls.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sample;
struct stack;
struct top_input;
struct top_model;

enum { TOP_MAX_FRAMES = 512 }; // of a stack; of a deeper one those next to the root are left out

// The functions (top_function_name) at one location, innermost first: 1 or more, at most
// TOP_MAX_FRAMES. Returns how many.
size_t top_frames_at(const struct top_input *input, uint32_t location,
                     uint32_t ret[TOP_MAX_FRAMES]);

// Those of the whole stack, leaf first, and last why it is not whole. 1 or more.
size_t top_frames(const struct top_input *input, const struct stack *stack,
                  uint32_t ret[TOP_MAX_FRAMES]);

// Sets model->functions, or model->nodes, from the window's sums, one for each sample.
void top_find_functions(struct top_model *model, const struct sample *sums, size_t n);
void top_find_tree(struct top_model *model, const struct sample *sums, size_t n);
