// SPDX-License-Identifier: MIT
// java_methods: names and lines of a process's Java methods, by the address of their Method.
//
// A Method never moves, but after its class is unloaded, another one may take its address. So all
// is forgotten whenever the process has unloaded a class: HotSpot counts that in a variable, before
// it frees anything (java_unloads).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"
#include "java_layout.h"
#include "java_memory.h"

struct frame_names;

struct java_method {
	uint64_t address;
	uint64_t const_method;
	uint32_t function; // of frame_names
	uint32_t code_bytes;
	bool is_hidden; // Java leaves it out of its stack traces
	uint8_t *lines; // packed; NULL: none
	size_t lines_size;
};

// Zero is empty, but for what is borrowed.
struct java_methods {
	const struct java_layout *layout; // borrowed
	struct frame_names *names;        // borrowed
	struct java_method *items;
	size_t n, capacity;
	size_t lines_bytes; // of all
	struct hash_index index;
};

void java_methods_deinit(struct java_methods *methods);

// Forgets all of them.
void java_methods_clear(struct java_methods *methods);

// Returns the method at the address if it was read before, until the next java_methods_get; NULL:
// it was not.
const struct java_method *java_methods_find(const struct java_methods *methods, uint64_t address);

// Returns the method at the address, until the next call; NULL: there is none, or it cannot be
// read.
const struct java_method *java_methods_get(struct java_methods *methods,
                                           const struct java_memory *memory, uint64_t address);

// Returns the line of the bytecode, of -1 that of the first one; 0: not known.
uint32_t java_method_line(const struct java_layout *layout, const struct java_method *method,
                          int32_t bci);

// Returns the index of the bytecode at the address, of an interpreted frame; -1: it is not in the
// method.
int32_t java_method_bci(const struct java_layout *layout, const struct java_method *method,
                        uint64_t bytecode);
