// SPDX-License-Identifier: MIT
// rescues: threads in the rest of a call (syscall_rest.h), in memory that the tracing process
// shares with its parent, for whoever is there should it be killed.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct syscall_rest;

// Before the process forks that is to trace. Without memory for it, nothing is kept.
void rescues_share(void);

// The thread is about to enter the rest, of which a copy is kept in place of an earlier one; or it
// is out of it. Where there are too many, further ones are not kept.
void rescues_keep(int tid, const struct syscall_rest *rest);
void rescues_drop(int tid);

// Calls the function for each that is kept; it may drop it. Returns how many are kept still.
size_t rescues_each(void (*function)(int tid, struct syscall_rest *rest));

// True if any is kept.
bool rescues_any(void);
