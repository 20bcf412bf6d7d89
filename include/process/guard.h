// SPDX-License-Identifier: MIT
// guard: a way out of work on files that the target has made.
//
// Such files can be cut short while libdw reads them through a mapping (SIGBUS); libdw 0.188 has
// faults of its own on damaged ones, and bounds neither its time nor its memory. Guarded work that
// runs into one of these is abandoned: what it had begun is leaked, and the profile goes on.
#pragma once

#include <stdint.h>

enum guard_end {
	GUARD_DONE,
	GUARD_TRUNCATED, // a file got shorter while it was read
	GUARD_FAULT,     // a fault of libdw's, or of ours
	GUARD_TIME,      // the work took too long, or waits for something
	GUARD_MEMORY,    // it needs too much memory
};

typedef void guard_work(void *context);

// Runs work(context), for at most *left_ns of CPU time (counted in steps of 100 ms), and takes what
// it took off that. Says how it ended: after all but GUARD_DONE, whatever the work was changing may
// be half done, and is to be forgotten. Time ends only what can be left behind safely: code of
// libdw and its helpers, and system calls that wait. Within guarded work this merely calls, and
// what goes wrong ends the outermost. For one thread only; takes SIGVTALRM and SIGPROF over.
enum guard_end guard_run(guard_work *work, void *context, int64_t *left_ns);

// From within guarded work, before it opens files or unpacks them: from now on it may wait for no
// more than GUARD_WAIT_NS, and take no more than that much memory besides what is in use now.
void guard_opens_files(uint64_t memory_bytes);

#define GUARD_WAIT_NS INT64_C(2000000000)

// Leaves the guarded work, if any runs; else returns.
void guard_leave(enum guard_end end);

// In words: "it was cut short while it was read". NULL for GUARD_DONE.
const char *guard_end_text(enum guard_end end);

// The address of the instruction where the last guarded work ended early, for tests.
uintptr_t guard_last_pc(void);
