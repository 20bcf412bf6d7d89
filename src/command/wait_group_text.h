// SPDX-License-Identifier: MIT
// wait_group_text: "212 goroutines wait for mutex 0xc000012345, the oldest for 41 s or more".
#pragma once

#include <stddef.h>
#include <stdio.h>

struct profile;

// A line for each thing that two goroutines or more of the profile's wait for, with that in front
// of locks, and the other in front of the rest. No more than max_lines, and how many there are
// more.
void wait_group_text_write(const struct profile *profile, const char *lock_prefix,
                           const char *prefix, size_t max_lines, FILE *stream);
