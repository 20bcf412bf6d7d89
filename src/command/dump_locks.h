// SPDX-License-Identifier: MIT
// dump_locks: who holds what the threads of a dump wait for.
//
// Each waiting thread is looked at twice, two milliseconds apart, without a stop: what was not the
// same both times is not told, as locks are passed on all the time. Processes that hold something
// are looked at, too, as far as that is permitted.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deadlock.h"
#include "lock_claim.h"
#include "lock_look.h"
#include "peer_end.h"

struct dump;

// A thread of the dump, or of a process that holds something.
struct dump_waiter {
	struct lock_look look;
	int64_t thread; // its position in the dump's profile; -1: another process's
	bool has_look;  // else it runs, or cannot be looked at
	bool is_same;   // it slept on as it was, from the tick to the second look
	enum lock_hint hint;
	struct lock_claim claim;
	struct peer_wanted peer; // of a pipe or socket: who has the other end
	char *symbol;            // of the lock; NULL: none
};

struct dump_locks {
	struct dump_waiter *waiters;
	size_t count, capacity;
	struct deadlock_node *nodes; // of the same positions
	int *pids;                   // whose threads are all among them
	size_t n_pids, pids_capacity;
	size_t n_other_threads; // of processes that are not the dump's
	int *unseen;            // processes that hold something, but would have been too many
	size_t n_unseen_processes, unseen_capacity;
	size_t n_unseen_descriptors; // likewise, that could be other ends
	char *table;                 // of file locks, at the first look
	int64_t first_ns;            // when the last first look was
};

// The first look at a thread of the dump; it slept in `call` with `runs` as the kernel's count.
// asleep: false: it does not sleep, and holds things at most.
void dump_locks_add(struct dump_locks *locks, int pid, int tid, uint32_t thread, bool asleep,
                    uint64_t runs);

// All threads of the process were added.
void dump_locks_add_process(struct dump_locks *locks, int pid);

// The other processes, and the second look.
void dump_locks_look_again(struct dump_locks *locks);

// What the looks say, when the dump has its symbols.
void dump_locks_find(struct dump_locks *locks, const struct dump *dump);

// The node of the thread; NULL: none.
const struct deadlock_node *dump_locks_node(const struct dump_locks *locks, int pid, int tid);

void dump_locks_deinit(struct dump_locks *locks);
