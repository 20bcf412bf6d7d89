// SPDX-License-Identifier: MIT
// tick_unwind: from the copy of a thread's stack to its frames, in a tick.
#pragma once

#include <stdbool.h>

struct go_memory;
struct go_program;
struct snapshot;
struct target_thread;
struct ticker;
struct unwound;

// Unwinds the copy, with newer maps where it has to, and notes what that tells of the thread's next
// copy. Others that stop meanwhile are copied and let go (ticker_serve).
void tick_unwind(struct ticker *ticker, struct target_thread *thread,
                 const struct snapshot *snapshot, struct unwound *ret);

// The unwinding alone, of a goroutine's.
void tick_walk(struct ticker *ticker, const struct snapshot *snapshot, struct unwound *ret);

// Looks for Go in the process (go_program_find).
bool tick_find_go(struct ticker *ticker, const struct go_memory *memory, struct go_program *ret);

// Brings what is known of the process's memory, and of the runtimes in it, up to date, through its
// thread `tid` (address_space_update). Likewise.
void tick_update_space(struct ticker *ticker, int tid, bool force);
