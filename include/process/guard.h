// SPDX-License-Identifier: MIT
// guard: offers a way out of work on files that the target has made.
//
// Such files can be cut short while libdw reads them through a mapping (SIGBUS). libdw 0.188 has
// faults of its own on damaged files, and limits neither its time nor its memory. Guarded work that
// runs into one of these is abandoned: what it had begun is leaked, and the profile goes on.
#pragma once

#include <signal.h>
#include <stdint.h>

enum guard_end {
	GUARD_DONE,
	GUARD_TRUNCATED, // a file got shorter while it was read
	GUARD_FAULT,     // a fault of libdw's, or of ours
	GUARD_TIME,      // the work took too long, or waited for something
	GUARD_MEMORY,    // it needs too much memory
};

typedef void guard_work(void *context);

// Runs work(context), for at most *left_ns of CPU time (counted in steps of 100 ms), and subtracts
// what it took from that. Returns how it ended. After all but GUARD_DONE, what the work was
// changing may be half done: discard it. A lack of time ends only what can be left safely: code of
// libdw and its helpers, and system calls that wait. Within guarded work, it only calls
// work(context), and what goes wrong ends the outermost work. For one thread only, and
// each process that it forks. Uses SIGRTMIN + 8 and + 9, or SIGVTALRM and SIGALRM (signal_timer).
enum guard_end guard_run(guard_work *work, void *context, int64_t *left_ns);

// Call it within guarded work, before the work opens or unpacks files. From then on the work may
// wait for at most GUARD_WAIT_NS, and use at most memory_bytes beyond what is in use now.
void guard_opens_files(uint64_t memory_bytes);

#define GUARD_WAIT_NS INT64_C(2000000000)

// The signals that end guarded work: block them for what must not be left in the middle.
void guard_fill_signals(sigset_t *set);

// Abandons the guarded work as GUARD_MEMORY; returns if there is none.
void guard_leave_memory(void);

// Describes the end, such as "it was cut short while it was read"; NULL for GUARD_DONE.
const char *guard_end_text(enum guard_end end);

// Returns the address of the instruction where the last guarded work ended early, for tests.
uintptr_t guard_last_pc(void);
