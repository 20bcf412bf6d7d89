// SPDX-License-Identifier: MIT
// v8_functions: names and places of a process's JavaScript functions.
//
// The garbage collector moves objects, and what is freed is used again for objects of the same
// kind. So a function is known by an identity: all that tells it from others, as it was while the
// thread stood still. It is read while the thread runs again, and believed only if it still has the
// same identity then: what moves meanwhile changes the pointers in it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"
#include "v8_memory.h"
#include "v8_string.h"

struct frame_names;

struct v8_script_identity {
	uint64_t script;   // 0: it has none
	uint64_t name, id; // the id is its own for as long as the engine lives
};

struct v8_identity {
	uint64_t shared; // a SharedFunctionInfo
	uint64_t map, name;
	uint64_t literal; // its number in the script
	struct v8_script_identity script;
};

struct v8_script {
	struct v8_script_identity identity;
	char *file; // "": not known
	int32_t first_line;
	struct v8_lines lines;
};

struct v8_function {
	struct v8_identity identity;
	uint32_t function; // of frame_names
	uint32_t script;   // UINT32_MAX: none
	uint32_t line;     // where it begins; 0: not known
};

// Zero is empty, but for what is borrowed.
struct v8_functions {
	const struct v8_layout *layout; // borrowed
	struct frame_names *names;      // borrowed
	struct v8_function *items;
	size_t n, capacity;
	struct hash_index index;
	struct v8_script *scripts;
	size_t n_scripts, scripts_capacity;
	size_t n_lines; // of all scripts
	struct hash_index script_index;
};

void v8_functions_deinit(struct v8_functions *functions);

// Makes the identity from V8_SHARED_BYTES of the SharedFunctionInfo and V8_SCRIPT_BYTES of its
// script.
struct v8_identity v8_identity_of(const struct v8_layout *layout, uint64_t shared,
                                  const uint8_t *shared_bytes, const uint8_t *script_bytes);

// Returns the function, until the next call; NULL: it could not be read, or is not there any more.
const struct v8_function *v8_functions_get(struct v8_functions *functions,
                                           const struct v8_memory *memory,
                                           const struct v8_identity *identity);
