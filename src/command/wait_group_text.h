// SPDX-License-Identifier: MIT
// wait_group_text: writes lines such as
// "212 goroutines wait for mutex 0xc000012345, the oldest for 41 s or more".
#pragma once

#include <stddef.h>
#include <stdio.h>

struct profile;

// Writes a line for each thing that at least two of the profile's goroutines wait for. Lines about
// locks begin with lock_prefix, others with prefix. After max_lines, says how many more there are.
void wait_group_text_write(const struct profile *profile, const char *lock_prefix,
                           const char *prefix, size_t max_lines, FILE *stream);
