// SPDX-License-Identifier: MIT
// diff_table: prints which functions changed, for people, and judges --check.
#pragma once

#include <stdio.h>

struct diff_changes;
struct error;
struct options;

// Prints the table.
void diff_table_print(const struct options *options, const struct diff_changes *changes,
                      FILE *stream);

// Returns an error (EXIT_STATUS_SLOWER, EXIT_STATUS_UNSURE) if --check is given and fails.
struct error *diff_table_check(const struct options *options, const struct diff_changes *changes);
