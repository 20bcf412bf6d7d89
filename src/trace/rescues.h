// SPDX-License-Identifier: MIT
// rescues: keeps threads in the rest of a call (syscall_rest.h), in memory that the tracing process
// shares with its parent, which sees to them if the tracing process is killed.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct syscall_rest;

enum { MAX_RESCUES = 4096 };

// Call it before the process that is to trace is forked. Without memory for it, nothing is kept.
void rescues_share(void);

// Keeps a copy of the rest that the thread is about to enter, in place of an earlier one; or drops
// it, when the thread is out of the rest. Keeps no more than there is room for.
void rescues_keep(int tid, const struct syscall_rest *rest);
void rescues_drop(int tid);

// Calls the function for each that is kept; it may drop it. Returns how many are still kept.
size_t rescues_each(void (*function)(int tid, struct syscall_rest *rest));

// True if any is kept.
bool rescues_any(void);
