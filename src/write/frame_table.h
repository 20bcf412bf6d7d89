// SPDX-License-Identifier: MIT
// frame_table: the frames of a profile's stacks, each once, as all formats but pprof write them:
// inlined calls, what a thread waits in, where a stack ends, and labels are frames, too.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"
#include "profile.h"
#include "string_table.h"

struct report;

enum frame_kind {
	FRAME_CODE,
	FRAME_INLINED,
	FRAME_KERNEL, // a frame of what the thread waits in
	FRAME_END,    // says why the stack does not reach the thread's root
	FRAME_LABEL,  // a label as root frame
};

struct frame_function {
	uint32_t name, file, module; // strings; "" where unknown
	uint32_t start_line;         // 0: unknown
	enum frame_kind kind;
	bool own; // of the program's own code (own_code.h)
};

struct frame {
	uint32_t function;
	uint32_t line; // 0: unknown
};

// The frames of a location, wait or end, outermost first.
struct frame_list {
	size_t first; // position in ids
	uint32_t count;
};

struct frame_table {
	const struct report *report; // borrowed
	struct string_table strings;
	struct frame_function *functions;
	size_t n_functions, functions_capacity;
	struct frame *frames;
	size_t n_frames, frames_capacity;
	struct hash_index function_index, frame_index;

	// Private to frame_table.c.
	uint32_t *ids; // frames
	size_t n_ids, ids_capacity;
	struct frame_list *locations, *waits, *labels, ends[N_STACK_ENDS];
	uint32_t *stack;
	size_t stack_capacity;
};

void frame_table_init(struct frame_table *table, const struct report *report);
void frame_table_deinit(struct frame_table *table);

// Adds the frames of the sample.
void frame_table_add(struct frame_table *table, const struct sample *sample);

// Goes through the frames of a sample that was added, root first; there is at least one.
struct frame_walk {
	const struct frame_table *table;
	const uint32_t *locations; // leaf first
	uint32_t n_locations, labels, wait;
	enum stack_end end;
	uint32_t part, n_read; // of the part's frames
};

struct frame_walk frame_walk_begin(const struct frame_table *table, const struct sample *sample);

// Returns false behind the last frame.
bool frame_walk_next(struct frame_walk *walk, uint32_t *ret_frame);

// Goes past what both begin with; they are of the same table.
void frame_walk_skip_common(struct frame_walk *a, struct frame_walk *b);

// Adds the frames of the sample and returns them, root first; valid until the next call.
const uint32_t *frame_table_stack(struct frame_table *table, const struct sample *sample,
                                  size_t *ret_count);

const char *frame_table_string(const struct frame_table *table, uint32_t string);
