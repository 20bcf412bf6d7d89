// SPDX-License-Identifier: MIT
// waits_table: what --waits prints on a terminal: which threads waited for long, for what and
// where.
#pragma once

#include <stdio.h>

struct options;
struct report_source;

// Prints the waits of source->part: those without work last, and those of the same stack in the
// same call, or for the same lock, in one row. `width`: of the terminal; 0: no limit.
void waits_table_write(const struct options *options, const struct report_source *source, int width,
                       FILE *stream);
