// SPDX-License-Identifier: MIT
// frame_names: keeps functions that only a program's own runtime can name, such as CPython's.
//
// Frames of a runtime are locations in a module of the kind MODULE_RUNTIME. Their address is a
// function of this table and a line in it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hash.h"

// Any bytes but NUL, as the target has them.
struct frame_function {
	char *name;          // NULL: missing
	char *file;          // "": not known
	uint32_t start_line; // 0: not known
};

struct frame_names {
	struct frame_function *functions;
	size_t n_functions, functions_capacity;
	struct hash_index index;
};

enum {
	FRAME_NAMES_MAX = 1 << 20, // functions; a hostile target may make ever new ones
	FRAME_NAMES_NONE = 0,      // a function without a name
};

// A zeroed struct frame_names is an empty table.
void frame_names_deinit(struct frame_names *names);

// Returns the number of the function, from 1 on, new or known; FRAME_NAMES_NONE: there are too
// many. Copies the strings.
uint32_t frame_names_add(struct frame_names *names, const char *name, const char *file,
                         uint32_t start_line);

// Gives a function the number that it has in a recording, if that is not beyond FRAME_NAMES_MAX.
// Numbers may be missing. Do not call frame_names_add for such a table.
void frame_names_set(struct frame_names *names, uint64_t number, const char *name, const char *file,
                     uint32_t start_line);

// Returns the address of a location: in that function, or FRAME_NAMES_NONE, at that line (0: not
// known).
static inline uint64_t frame_names_address(uint32_t function, uint32_t line)
{
	return (uint64_t)function << 32 | line;
}

// Returns the function at a location's address, owned by the table, and the line; NULL: it has no
// name.
const struct frame_function *frame_names_find(const struct frame_names *names, uint64_t address,
                                              uint32_t *ret_line);
