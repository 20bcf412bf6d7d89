// SPDX-License-Identifier: MIT
// goroutine_parked: a goroutine that no thread runs, in a tick: its stack, read while the program
// runs, and what it waits for.
#pragma once

#include <stdbool.h>

#include "go_program.h"

struct goroutine;
struct goroutine_entry;
struct goroutine_samples;
struct ticker;

// The target's.
struct go_memory goroutine_memory(const struct ticker *ticker);

// Why it waits, in the runtime's words; "waiting" where these are not known.
const char *goroutine_reason(const struct goroutine_samples *samples, const struct goroutine *seen);

bool goroutine_is_parked(const struct goroutine *goroutine);

// Counts one that is parked, as it was just read. One that moves all the while is counted when it
// is seen next.
void goroutine_count_parked(struct ticker *ticker, struct goroutine_entry *entry,
                            const struct goroutine *goroutine);
