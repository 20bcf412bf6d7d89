// SPDX-License-Identifier: MIT
// input_limit: bounds the memory that reading a file of anybody's may take, whatever is in it: 256
// MB, and twice the bytes that were read.
#pragma once

#include <stddef.h>

// Begins: if memory runs out from now on, the process says that the file is too large, and exits
// with status 1. `name` is borrowed. Of two files the limit is that of both.
void input_limit_begin(const char *name);

// Raises the limit for so many bytes that were read. Does nothing before input_limit_begin.
void input_limit_add(size_t bytes);

// Ends: what follows depends on other files than the input, such as those that have names.
void input_limit_end(void);
