// SPDX-License-Identifier: MIT
// v8_string: JavaScript strings of a process: their text as UTF-8, and where their lines begin.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "v8_memory.h"

// Of all strings that are read for one stack.
enum { V8_MAX_CHARACTERS = 32 << 20 };

// Reads at most size - 1 bytes of a string's text; a longer one is cut between two characters.
// False if the value is not a string, or cannot be read.
bool v8_string_read(const struct v8_memory *memory, uint64_t string, char *ret, size_t size);

// Numbers of characters at which lines end, sorted.
struct v8_lines {
	uint32_t *ends; // owned; NULL: not known
	size_t n, capacity;
};

// Finds where the lines of a source end, as JavaScript has it. False if it cannot be read, or is
// too long, or has too many.
bool v8_string_lines(const struct v8_memory *memory, uint64_t string, struct v8_lines *ret);
