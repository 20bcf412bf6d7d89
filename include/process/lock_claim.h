// SPDX-License-Identifier: MIT
// lock_claim: tells what a wait is for and who holds that, from the words of a lock.
//
// It takes and returns plain values, and reads nothing. Whatever the words are, the result is one
// of the threads that the caller knows, or none.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lock_look;

enum lock_what {
	LOCK_WHAT_NONE, // not a lock, or not known
	LOCK_WHAT_MUTEX,
	LOCK_WHAT_RWLOCK,
	LOCK_WHAT_STREAM, // of stdio
	LOCK_WHAT_JOIN,   // the end of a thread
	LOCK_WHAT_CONDITION,
	LOCK_WHAT_SEMAPHORE,
	LOCK_WHAT_BARRIER,
	LOCK_WHAT_GUARD, // of a C++ static variable's initialization
	LOCK_WHAT_FILE,
	LOCK_WHAT_CHILD,
	LOCK_WHAT_PROCESS, // the end of a process, by a pidfd
	LOCK_WHAT_PIPE,
	LOCK_WHAT_SOCKET,
	LOCK_WHAT_LOCK,    // of a language or runtime
	LOCK_WHAT_MONITOR, // of an object of a language
	N_LOCK_WHATS,
};

// Returns "mutex", "rwlock", "stream", "join", ...; "" for LOCK_WHAT_NONE.
const char *lock_what_name(enum lock_what what);

// What a function's name tells of a futex that it waits on.
enum lock_hint {
	LOCK_HINT_NONE,
	LOCK_HINT_MUTEX,
	LOCK_HINT_READ,  // of a read-write lock
	LOCK_HINT_WRITE, // of a read-write lock
	LOCK_HINT_JOIN,
	LOCK_HINT_CONDITION,
	LOCK_HINT_SEMAPHORE,
	LOCK_HINT_BARRIER,
	LOCK_HINT_GUARD,
	LOCK_HINT_PRIVATE, // a lock that only the C library uses
};
enum lock_hint lock_hint_of(const char *function);

struct lock_claim {
	enum lock_what what;
	uint64_t address; // of the lock; 0: none
	int owner;        // the tid of the thread that holds it, as its process sees it; 0: none
	uint32_t readers; // how many hold a read-write lock
	bool is_shared;   // between processes: the owner may be another one's thread
	bool is_certain;  // the lock's own kind tells the owner; if false, the owner is only
	                  // plausible
	bool is_timed;    // the wait ends by itself
};

// Finds what the thread waits for in futex(2); `hint` comes from the innermost function that has
// one. `is_tid`: true for the tid of a living thread of the process (or, if the lock is shared, of
// any process).
void lock_claim_read(const struct lock_look *look, enum lock_hint hint,
                     bool (*is_tid)(void *context, int tid, bool is_shared), void *context,
                     struct lock_claim *ret);
