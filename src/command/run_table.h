// SPDX-License-Identifier: MIT
// run_table: what a run, or a recording of one, shows on a terminal: in which functions of the
// program its time was spent, and what for and for whom its threads waited.
#pragma once

#include <stdio.h>

struct modules;
struct options;
struct profile;
struct symbols;
struct timeline;

// Returns how many columns the terminal of that descriptor has; 0: it is none.
int run_table_width(int fd);

// Writes both tables as text of at most `width` columns (0: any) to the stream. `timeline` is that
// of the profile; sorts it.
void run_table_write(const struct options *options, const struct profile *profile,
                     struct timeline *timeline, const struct modules *modules,
                     const struct symbols *symbols, int width, FILE *stream);
