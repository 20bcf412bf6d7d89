// SPDX-License-Identifier: MIT
// python_native: tells which of a process's machine code is the interpreter's own.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct module;
struct modules;
struct profile;

enum python_native {
	PYTHON_NATIVE_NOT_SEEN,
	PYTHON_NATIVE_OTHER,      // extensions, libraries, and work of the interpreter for programs
	PYTHON_NATIVE_TAKE_GIL,   // waits for the GIL
	PYTHON_NATIVE_COLLECT,    // collects garbage
	PYTHON_NATIVE_GREENLET,   // begins a greenlet on another one's stack
	PYTHON_NATIVE_GREENLETS,  // the rest of that library
	PYTHON_NATIVE_EVAL,       // the loop that executes Python's code
	PYTHON_NATIVE_EVAL_JIT,   // another one, which calls code that it has made (pyston_lite)
	PYTHON_NATIVE_MAKES_CODE, // calls code that the interpreter has made: its JIT's,
	                          // trampolines
	PYTHON_NATIVE_PLUMBING,   // leads from one function's call to the next, or to the first one
};

// What is known of locations, each of which is looked up once.
struct python_natives {
	struct module *module; // the interpreter's; borrowed, as the next one
	const struct modules *modules;
	uint64_t eval, eval_bytes; // the loop's address in the file, and its size
	uint8_t *kinds;
	size_t n, capacity;
};

void python_natives_deinit(struct python_natives *natives);

enum python_native python_natives_get(struct python_natives *natives, const struct profile *profile,
                                      uint32_t location);
