// SPDX-License-Identifier: MIT
// dump_shared: locks in memory that two processes share.
//
// A lock's word tells the tid of its holder, which may be a thread of any process, or one that is
// long gone: it counts only if the thread's process has the same memory mapped. A word is known to
// be a mutex's by the names of the functions that wait for it, and these are not known for another
// process: there it is taken for a mutex if the thread waits at the same instruction of the same
// file as one of the dump's threads that wait for a mutex.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct dump_waiter;
struct lock_look;

// True if the process `pid` has the memory mapped in which the waiter's futex lies.
bool dump_shared_has(const struct lock_look *look, int pid);

// Returns the pid of another process of which a thread may hold what this one waits for; 0: none.
int dump_shared_holder(const struct lock_look *look);

// Sets the hints for threads of other processes, by comparing their waits with the dump's.
void dump_shared_hints(struct dump_waiter *waiters, size_t n);
