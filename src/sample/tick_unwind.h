// SPDX-License-Identifier: MIT
// tick_unwind: turns the copy of a thread's stack into its frames, in a tick.
#pragma once

#include <stdbool.h>

struct snapshot;
struct target_thread;
struct ticker;
struct unwound;

// Unwinds the copy, with newer maps if needed, and notes what that tells for the thread's next
// copy. Others that stop meanwhile are copied and let go (ticker_serve).
void tick_unwind(struct ticker *ticker, struct target_thread *thread,
                 const struct snapshot *snapshot, struct unwound *ret);

// Does only the unwinding, for a task's stack.
void tick_walk(struct ticker *ticker, const struct snapshot *snapshot, struct unwound *ret);

// Reads what the runtimes know of a thread that waits, for a stack of it that was read from memory.
// Call tick_merge only if the thread has waited all the while.
void tick_read_runtimes(struct ticker *ticker, int tid, struct snapshot *snapshot);

// Puts the runtimes' frames into that stack.
void tick_merge(struct ticker *ticker, int tid, const struct snapshot *snapshot,
                struct unwound *ret);

// Brings up to date what is known of the process's memory, and of the runtimes in it, through its
// thread `tid` (address_space_update). Others that stop meanwhile are served, too.
void tick_update_space(struct ticker *ticker, int tid, bool force);
