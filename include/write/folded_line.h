// SPDX-License-Identifier: MIT
// folded_line: reads lines of folded stacks, such as "root;leaf 12", of any profiler.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What says that a text has none of them; the argument is the file's name.
#define FOLDED_NONE "%s is not a profile: none of its lines is a folded stack, as in main;work 12"

struct folded_line {
	const char *stack; // in the text, not terminated
	size_t length;
	int64_t count; // below 10^18
};

// Parses a line without its newline; a carriage return before that and a byte order mark do not
// count. False: it is not a folded stack.
bool folded_line_parse(const char *text, size_t length, struct folded_line *ret);
