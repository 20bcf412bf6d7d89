// SPDX-License-Identifier: MIT
// run_table: what a run, or a recording of one, shows on a terminal: in which functions of the
// program its time was spent, and what for and for whom its threads waited.
#pragma once

#include <stdio.h>

struct options;
struct report_source;

// Returns how many columns the terminal of that descriptor has; 0: it is none.
int run_table_width(int fd);

// Writes both tables as text of at most `width` columns (0: any) to the stream. Samples count as
// the kernel's clocks say (weights.h). Needs source->timeline, and sorts it. With --waits it writes
// that table alone (waits_table.h).
void run_table_write(const struct options *options, const struct report_source *source, int width,
                     FILE *stream);
