// SPDX-License-Identifier: MIT
// lock_claim: what a wait is for and who holds that, as the words of a lock say.
//
// Plain values in, plain values out: nothing is read here, and whatever the words are, what comes
// out is one of the threads that the caller knows, or none.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lock_look;

enum lock_what {
	LOCK_WHAT_NONE, // not a lock, or not known
	LOCK_WHAT_MUTEX,
	LOCK_WHAT_RWLOCK,
	LOCK_WHAT_STREAM, // stdio's
	LOCK_WHAT_JOIN,   // a thread's end
	LOCK_WHAT_CONDITION,
	LOCK_WHAT_SEMAPHORE,
	LOCK_WHAT_BARRIER,
	LOCK_WHAT_GUARD, // of a C++ static variable's initialization
	LOCK_WHAT_FILE,
	LOCK_WHAT_CHILD,
	LOCK_WHAT_PROCESS, // its end, by a pidfd
	LOCK_WHAT_PIPE,
	LOCK_WHAT_SOCKET,
	LOCK_WHAT_LOCK, // of a language's or runtime's
	N_LOCK_WHATS,
};

// "mutex", "rwlock", "stream", "join", ...; "" for LOCK_WHAT_NONE.
const char *lock_what_name(enum lock_what what);

// What the name of a function tells of a futex below it.
enum lock_hint {
	LOCK_HINT_NONE,
	LOCK_HINT_MUTEX,
	LOCK_HINT_READ,  // of a read-write lock
	LOCK_HINT_WRITE, // likewise
	LOCK_HINT_JOIN,
	LOCK_HINT_CONDITION,
	LOCK_HINT_SEMAPHORE,
	LOCK_HINT_BARRIER,
	LOCK_HINT_GUARD,
	LOCK_HINT_PRIVATE, // one of the C library's own
};
enum lock_hint lock_hint_of(const char *function);

struct lock_claim {
	enum lock_what what;
	uint64_t address; // of the lock; 0: none
	int owner;        // the tid of the thread that holds it, as its process sees it; 0: none
	uint32_t readers; // that hold a read-write lock
	bool is_shared;   // between processes: the owner may be another one's thread
	bool is_certain;  // the owner is what the lock's own kind says; else it is but plausible
	bool is_timed;    // the wait ends by itself
};

// What the thread waits for, in futex(2); `hint` by the innermost function that has one. `is_tid`:
// true for the tid of a living thread of the process (or, if the lock is shared, of any process).
void lock_claim_read(const struct lock_look *look, enum lock_hint hint,
                     bool (*is_tid)(void *context, int tid, bool is_shared), void *context,
                     struct lock_claim *ret);
