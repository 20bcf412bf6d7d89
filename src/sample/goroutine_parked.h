// SPDX-License-Identifier: MIT
// goroutine_parked: samples a goroutine that no thread runs: its stack, read while the program
// runs, and what it waits for.
#pragma once

#include <stdbool.h>

#include "go_program.h"

struct goroutine;
struct goroutine_entry;
struct goroutine_samples;
struct ticker;

// Returns the memory of the target.
struct go_memory goroutine_memory(const struct ticker *ticker);

// Returns why it waits, in the runtime's words; "waiting" if these are not known.
const char *goroutine_reason(const struct goroutine_samples *samples, const struct goroutine *seen);

bool goroutine_is_parked(const struct goroutine *goroutine);

// Counts a parked goroutine, as it was just read. One that keeps moving is counted when it is seen
// next.
void goroutine_count_parked(struct ticker *ticker, struct goroutine_entry *entry,
                            const struct goroutine *goroutine);
