// SPDX-License-Identifier: MIT
// unwind_check: compares every stack that the sampler unwinds with what libdw's own unwinder makes
// of the same snapshot (--check-unwinding).
#pragma once

#include <stdbool.h>

struct snapshot;
struct unwind_check;
struct unwinder;
struct unwound;

struct unwind_check *unwind_check_create(void);
void unwind_check_destroy(struct unwind_check *check); // accepts NULL

// Compares the stack that the unwinder, which records pcs, has just unwound. `tid` is alive.
void unwind_check_compare(struct unwind_check *check, int tid, const struct unwinder *unwinder,
                          const struct snapshot *snapshot, const struct unwound *unwound);

// Prints the counts on stderr; `verbose`: with the first stacks that differ.
void unwind_check_print(const struct unwind_check *check, bool verbose);
