// SPDX-License-Identifier: MIT
// goroutine_parked: samples a goroutine that no thread runs: its stack, read while the program
// runs, and what it waits for.
#pragma once

#include <stdbool.h>

#include "go_program.h"

struct goroutine;
struct goroutine_entry;
struct ticker;

// Returns the memory of the target.
struct go_memory goroutine_memory(const struct ticker *ticker);

bool goroutine_is_parked(const struct goroutine *goroutine);

// Counts a parked goroutine, as it was just read; if its stack has to be copied first, with the
// next goroutine_count_copied. One that keeps moving is counted when it is seen next. Call it only
// where the entry is not used any more.
void goroutine_count_parked(struct ticker *ticker, struct goroutine_entry *entry,
                            const struct goroutine *goroutine);

// Copies the stacks that are to be copied, and counts their goroutines. Attends to stopped threads
// meanwhile.
void goroutine_count_copied(struct ticker *ticker);
