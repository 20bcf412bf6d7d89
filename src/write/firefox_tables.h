// SPDX-License-Identifier: MIT
// firefox_tables: the tables of a processed profile that its threads share (write_firefox.c):
// strings, functions, frames, stacks as a tree, libraries.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "frame_table.h"
#include "hash.h"
#include "profile.h"

struct json;
struct report;

enum firefox_category {
	FIREFOX_OTHER, // the grey one, which each profile must have
	FIREFOX_RUNNING,
	FIREFOX_WAITING_FOR_CPU,
	FIREFOX_SLEEPING,
	FIREFOX_DISK,
	FIREFOX_STOPPED,
	FIREFOX_KERNEL, // of frames in the kernel that are not a stack's leaf
	N_FIREFOX_CATEGORIES,
};

const char *firefox_category_name(enum firefox_category category);
const char *firefox_category_color(enum firefox_category category);
enum firefox_category firefox_category_of(enum thread_state state);

// A frame in the tree of stacks. The leaf of a sample has the sample's category, any other frame
// the kernel's or its parent's.
struct firefox_frame {
	uint32_t frame; // position in frames
	int category;   // -1: the parent's
};

struct firefox_stack {
	uint32_t frame;  // position in leaf_frames
	uint32_t parent; // stack, or NO_PARENT
};

struct firefox_tables {
	struct frame_table frames; // its functions and strings are those of the profile
	struct firefox_frame *leaf_frames;
	size_t n_leaf_frames, leaf_frames_capacity;
	struct firefox_stack *stacks;
	size_t n_stacks, stacks_capacity;
	struct hash_index frame_index, stack_index;
};

void firefox_tables_init(struct firefox_tables *tables, const struct report *report);
void firefox_tables_deinit(struct firefox_tables *tables);

// The sample's stack in stackTable.
uint32_t firefox_tables_stack(struct firefox_tables *tables, const struct sample *sample);

// Writes the members "libs" and "shared".
void firefox_tables_put(struct firefox_tables *tables, struct json *json);
