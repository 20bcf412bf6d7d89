// SPDX-License-Identifier: MIT
// lock_look: reads what a sleeping thread waits for from its memory, without a stop.
//
// The thread stands still as long as the kernel's count of its runs stays the same. Two equal
// looks, some time apart, show one and the same wait.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proc.h"

enum {
	LOCK_WORDS_BEFORE = 4, // of 4 bytes, from the word that a futex is on
	LOCK_WORDS = 12,       // in all
};

struct lock_look {
	int pid, tid;
	uint64_t runs; // the kernel's count
	struct proc_syscall call;
	uint32_t words[LOCK_WORDS]; // around the address of futex(2)
	uint16_t has_words;         // a bit for each that could be read
	uint64_t owner_pointer;     // in the words of a stream's lock: the address of the thread's
	                            // descriptor...
	uint64_t owner_self;        // ...which begins with its own address...
	uint32_t owner_tid;         // ...and has its tid; 0: it is not a descriptor
	uint32_t thread_tid; // the tid of the descriptor that holds the futex's word; 0: none
	uint64_t inode;      // the file on which a lock is waited for; 0: none
	int awaited_pid;     // the process whose end is waited for by a pidfd; 0: none
};

// Looks at a thread that sleeps in a system call. False if it does not, or if nothing can be read.
bool lock_look_take(int pid, int tid, struct lock_look *ret);

// Reads the words around the futex that look->call waits on, and what they lead to, in the memory
// of look->tid: the rest of *look must be known.
void lock_look_read_words(struct lock_look *look);

// True if nothing has changed: the same sleep, the same words.
bool lock_look_is_same(const struct lock_look *a, const struct lock_look *b);

// Returns the n-th word from the futex's own on; n may be negative. 0 if it could not be read.
uint32_t lock_look_word(const struct lock_look *look, int n);
