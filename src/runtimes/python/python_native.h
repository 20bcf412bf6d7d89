// SPDX-License-Identifier: MIT
// python_native: which of a process's machine code is the interpreter's own.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct module;
struct modules;
struct profile;

enum python_native {
	PYTHON_NATIVE_NOT_SEEN,
	PYTHON_NATIVE_OTHER,    // extensions, libraries, and what the interpreter does for programs
	PYTHON_NATIVE_TAKE_GIL, // waits for the GIL
	PYTHON_NATIVE_COLLECT,  // collects garbage
	PYTHON_NATIVE_GREENLET, // where a greenlet begins, on the stack of another one
	PYTHON_NATIVE_EVAL,     // the loop that executes Python's code
	PYTHON_NATIVE_PLUMBING, // what leads from one call of a function to the next, or begins it
	                        // all
};

// By locations, each looked up once.
struct python_natives {
	struct module *module; // the interpreter's; borrowed, as the next one
	const struct modules *modules;
	uint64_t eval, eval_bytes; // the loop, in the file
	uint8_t *kinds;
	size_t n, capacity;
};

void python_natives_deinit(struct python_natives *natives);

enum python_native python_natives_get(struct python_natives *natives, const struct profile *profile,
                                      uint32_t location);
