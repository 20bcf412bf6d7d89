// SPDX-License-Identifier: MIT
// dump_locks: finds who holds what the threads of a dump wait for.
//
// Each waiting thread is looked at twice, two milliseconds apart, without a stop. As locks pass
// from thread to thread all the time, only what was the same both times is told. Other processes
// that hold something are looked at, too, if that is permitted.
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
	int64_t thread; // its position in the dump's profile; -1: in another process
	bool has_look;  // false if it runs, or cannot be looked at
	bool is_same;   // it slept in the same wait from the tick to the second look
	enum lock_hint hint;
	struct lock_claim claim;
	struct peer_wanted peer; // who has the other end of the pipe or socket that it waits for
	char *symbol;            // the lock's name; NULL: none
	const char *lock;        // of a language's runtime, as text (wait_reasons.h); NULL: none;
	                         // borrowed
};

struct dump_locks {
	struct dump_waiter *waiters;
	size_t count, capacity;
	struct deadlock_node *nodes; // one for each waiter, at the same position
	int *pids;                   // processes all of whose threads are among the waiters
	size_t n_pids, pids_capacity;
	size_t n_other_threads; // waiters in other processes than the dump's
	int *unseen;            // processes that hold something, but were too many to look at
	size_t n_unseen_processes, unseen_capacity;
	size_t n_unseen_descriptors; // possible other ends that were too many to look at
	char *table;                 // the kernel's file locks, at the first look
	int64_t first_ns;            // when the last of the first looks was
};

// Takes the first look at a thread of the dump, which had been scheduled `runs` times when it was
// sampled. Not `asleep`: the thread runs, so that it can hold something but waits for nothing.
// `lock` is borrowed until dump_locks_find.
void dump_locks_add(struct dump_locks *locks, int pid, int tid, uint32_t thread, bool asleep,
                    uint64_t runs, const char *lock);

// Notes that all threads of the process were added.
void dump_locks_add_process(struct dump_locks *locks, int pid);

// Looks at other processes that hold something, and takes the second look at all.
void dump_locks_look_again(struct dump_locks *locks);

// Decides what the two looks prove. The dump must have its symbols.
void dump_locks_find(struct dump_locks *locks, const struct dump *dump);

// Returns the thread's node; NULL: none.
const struct deadlock_node *dump_locks_node(const struct dump_locks *locks, int pid, int tid);

void dump_locks_deinit(struct dump_locks *locks);
