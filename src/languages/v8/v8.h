// SPDX-License-Identifier: MIT
// v8: V8 (Node's JavaScript engine) in a process, and the names of its functions.
//
// The native stack has V8's frames: those of compiled functions, which have no names, and those of
// the interpreter. Each begins with the same words (frame-constants.h in V8's sources), one of
// which points to the function. v8_read notes everything on the stack that looks like such a frame,
// and what identifies its function; v8_merge puts names where the unwinder has found frames.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "v8_functions.h"
#include "v8_layout.h"

struct runtimes_setup;
struct snapshot;
struct snapshot_note;
struct unwound;

enum {
	V8_MAX_FRAMES = 8192,   // of one thread, the innermost
	V8_MAX_FUNCTIONS = 512, // different ones of them
	V8_FUNCTION_BYTES = 40, // that are read of a JSFunction
	V8_PAGES = 64,          // with objects that were read last
};

struct v8 {
	const struct runtimes_setup *setup; // borrowed
	const struct v8_layout *layout;
	struct v8_functions functions;
	uint32_t names_module; // the index of "[v8]"
	uint32_t *locations;   // of the last merged stack
	size_t locations_capacity;
	struct v8_types types;
	uint64_t pages[V8_PAGES]; // addresses in pages that the next read will need; 0: none
};

// What looks like a frame of a JavaScript function.
struct v8_frame {
	uint64_t fp;
	uint32_t function; // its number in the note
};

// Two words of such frames, and what was read of what they point to; 0: it could not be read.
struct v8_noted {
	uint64_t function;  // a JSFunction
	uint64_t bytecodes; // of an interpreted function: a BytecodeArray; 0: that is none
	uint64_t bytecodes_map;
	uint8_t function_bytes[V8_FUNCTION_BYTES];
	uint8_t shared_bytes[V8_SHARED_BYTES]; // of its SharedFunctionInfo
	uint8_t script_bytes[V8_SCRIPT_BYTES]; // of that one's Script
};

// The note: then come the frames, by ascending fp, and the functions.
struct v8_note {
	uint32_t n_frames, n_functions;
	uint32_t n_left; // frames for which there was no room, at least
	uint32_t unused;
};

static inline const struct v8_frame *v8_note_frames(const struct v8_note *note)
{
	return (const struct v8_frame *)(note + 1);
}

static inline const struct v8_noted *v8_note_functions(const struct v8_note *note)
{
	return (const struct v8_noted *)(v8_note_frames(note) + note->n_frames);
}

// For struct language.
void v8_look_ahead(const void *v8, int tid, void *note, size_t room);
size_t v8_read_note(const void *v8, int tid, const struct snapshot *snapshot, void *note,
                    size_t room);
bool v8_merge(void *v8, int tid, const struct snapshot *snapshot, const struct snapshot_note *note,
              struct unwound *stack);
