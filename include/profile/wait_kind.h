// SPDX-License-Identifier: MIT
// wait_kind: tells the kind of a thread's time: it runs, waits for a CPU, or what sort of thing it
// waits for.
//
// A futex alone does not tell a contended lock from a worker without work: the names of the
// innermost functions do. The rules are in wait_kind.c and in language_text. They
// need no process, so they work for recordings as well.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "profile.h"

enum wait_kind {
	WAIT_KIND_RUNNING,
	WAIT_KIND_RUNNABLE,  // ready to run, waits for a CPU; a task: for a thread
	WAIT_KIND_LOCK,      // that another thread or process holds
	WAIT_KIND_CONDITION, // that another thread makes true: work, an end, a count
	WAIT_KIND_FILE,
	WAIT_KIND_SOCKET,
	WAIT_KIND_EVENT, // the first of several: descriptors, signals
	WAIT_KIND_TIMER,
	WAIT_KIND_PIPE, // another process: pipe, terminal, message, child
	WAIT_KIND_STOPPED,
	N_WAIT_KINDS,
};

// Returns "running", "runnable", "lock", "condition", "file", "socket", "event", "timer", "pipe" or
// "stopped".
const char *wait_kind_name(enum wait_kind kind);

// Returns the same for people: "waiting for a CPU" for WAIT_KIND_RUNNABLE, else the name.
const char *wait_kind_words(enum wait_kind kind);

// True if the thread waits for something other than a CPU.
bool wait_kind_is_blocked(enum wait_kind kind);

// True if a thread that waits like this usually has no work: the one meaning of "idle". One that
// waits for a lock, the disk, a child or a peer's answer has. `wait` may be NULL: not known.
bool wait_kind_has_no_work(enum wait_kind kind, const struct wait *wait);

// What a function's name says of a thread that waits in what it calls.
enum wait_name {
	WAIT_NAME_NOTHING,
	WAIT_NAME_LOCK,      // a lock's own function
	WAIT_NAME_CONDITION, // a condition's, on which a runtime may have built its locks...
	WAIT_NAME_RUNTIME_LOCK,
	WAIT_NAME_RUNTIME_CONDITION, // ...and its own conditions
	WAIT_NAME_BASE_LOCK,         // on which a runtime has built its conditions
	WAIT_NAME_PARK,              // on which a runtime has built its locks
	WAIT_NAME_WORKER,  // takes work out of a queue, whose own functions may have no names
	WAIT_NAME_TIMER,   // a runtime's own sleep
	WAIT_NAME_UNKNOWN, // it has no name
};
// `file`: the path of its source, or "".
enum wait_name wait_name_of(const char *function, const char *file);

// True if a thread whose innermost function is this one waits for any client, or for the next
// event.
bool wait_kind_is_client_call(const char *leaf);

enum { WAIT_KIND_MAX_NAMES = 12 }; // how many innermost functions are looked at

// Returns the kind for a thread in that state, which waits in `wait` (NULL: nothing is known).
// `leaf`: the innermost function's name, or NULL. `classes`: those of the n innermost functions,
// leaf first.
enum wait_kind wait_kind_of(enum thread_state state, const struct wait *wait, const char *leaf,
                            const enum wait_name *classes, size_t n);
