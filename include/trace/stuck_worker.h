// SPDX-License-Identifier: MIT
// stuck_worker: sees that the worker holds nobody while it waits in the kernel without end.
//
// Whoever reads a process's memory waits while its mmap_lock is taken: some milliseconds for a
// fork, for ever if a dead file server is to answer a mmap. No signal but SIGKILL ends that wait,
// not even that of a stop. What the worker had stopped by then would stand still for as long. So
// another process looks after it. Likewise for PTRACE_SEIZE, which waits for a thread of the
// process that is in exec; and for a copy of a held thread (holding.h) that a fault of ours does
// not let end.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { STUCK_WORKER_LOOK_NS = 500000000 }; // between two looks

// CPU time for the copy of one thread: even the deepest stack takes a thousandth of it.
#define STUCK_WORKER_MAX_COPY_NS (10 * INT64_C(1000000000))

struct stuck_worker {
	pid_t pid;
	int64_t max_copy_ns;
	bool is_kept;        // the run ends well without it, unless it is a bug
	bool is_to_end;      // it was asked to
	int64_t kill_ns;     // when it is killed if it has not ended by then, CLOCK_MONOTONIC; 0:
	                     // never
	bool is_told;        // that it is killed, which may take as long as its wait
	bool is_killed;      // by the caller
	bool holds;          // a thread; as seen when it was told
	int64_t looked_ns;   // CLOCK_MONOTONIC
	uint64_t runs;       // how often it had been scheduled by then
	unsigned int looks;  // in a row that have seen it in the same wait
	unsigned int hold;   // what it was holding then (holding_now)...
	int64_t hold_ns;     // ...and its CPU time when that was seen first
	uint64_t start_time; // of an orphan
};

// Looks at the worker, if it is time to. True if nothing but its death helps: if it has not ended
// in time (kill_ns), or, with a message, if it has spent max_copy_ns of CPU time on the copy of one
// held thread, or has been in one wait that no signal ends all the time, and holds a thread, or
// still samples though it was asked to end, or should have ended by itself.
bool stuck_worker_look(struct stuck_worker *worker);

// Looks after the worker in another child of the supervisor's: begin while that is there. Once it
// is dead, whose death has made the kernel ask the worker to end (PR_SET_PDEATHSIG), call the other
// one about each STUCK_WORKER_LOOK_NS: it kills a worker that still samples if that has been in one
// wait for 5 s.
void stuck_worker_init_orphan(struct stuck_worker *worker, pid_t pid);
void stuck_worker_look_at_orphan(struct stuck_worker *worker);
