// SPDX-License-Identifier: MIT
// dump_shared: locks that two processes share, in memory that both have mapped.
//
// The word that says who holds a lock names a thread of any process, or of one that is long gone:
// it counts only if that thread's process maps the same memory. And of another process no names of
// functions are known, by which a word is known to be a mutex's: it is taken for one if the thread
// waits at the very instruction of the very file at which one of the dump's waits for a mutex.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct dump_waiter;
struct lock_look;

// True if what lies at the waiter's futex is memory that the process `pid` has mapped as well.
bool dump_shared_has(const struct lock_look *look, int pid);

// Another process one of whose threads may hold what the thread waits for; 0: there is none.
int dump_shared_holder(const struct lock_look *look);

// Sets what is known of the waits of other processes' threads, by those of the dump.
void dump_shared_hints(struct dump_waiter *waiters, size_t n);
