// SPDX-License-Identifier: MIT
// idle_check: tells whether the threads that were asleep have slept on, for all of them at once.
//
// There are two ways. The better one is the sum of how often the process's threads were given a CPU
// (thread_sums.h). If it is the same twice, none has run.
//
// Without that sum, two figures tell it together. A thread that has run since has used CPU time,
// and the process's CPU clock (clock_getcpuclockid(3)) is the sum of what its threads have used, as
// /proc/PID/task/TID/schedstat shows it for each. But the kernel adds a thread's time only when it
// is switched off, or at the scheduler's next tick (kernel/sched/cputime.c, thread_group_cputime):
// a thread that has just begun to run is not seen. Such a thread is among the runnable threads of
// the machine (machine_load.h).
//
// Neither way shows a thread that was woken and still waits for a CPU: its stack is the sleeper's,
// but it does not sleep. It is among the machine's runnable threads, too.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proc.h"

struct machine_load;
struct target;
struct thread_sums;

struct idle_check {
	const struct thread_sums *sums;  // borrowed
	const struct machine_load *load; // likewise
	struct proc_schedstat rest;      // what no live thread shows, in the sums or the CPU clock
	bool known;                      // `rest` is known
	uint64_t runs;                   // the sum when it was last read
	bool has_runs;                   // it has been read
	unsigned int n_busy;             // ticks in a row in which some thread had run
	int64_t clock_ns;                // as last read; -1: never, or it cannot be read
};

void idle_check_init(struct idle_check *check, const struct thread_sums *sums,
                     const struct machine_load *load);

enum idle_answer {
	IDLE_NO,     // some thread has run, or so it seems
	IDLE_UNSURE, // at most one that has just begun to run may have
	IDLE_YES,
};

// Tells whether none has run since the last call. Call it before the first looks, and at each tick
// after one at which all threads were found asleep; n_others is machine_load_others just before.
enum idle_answer idle_check_since_last(struct idle_check *check, const struct target *target,
                                       long n_others);

// Call it when the threads that may run were just looked at. True if no other thread
// (thread->look_later) has run since its last look. `has_woken`: one may have been woken and still
// wait for a CPU. `has_stopped`: some of the first ones were stopped, and have run on since.
bool idle_check_is_valid(struct idle_check *check, const struct target *target, bool has_woken,
                         bool has_stopped);

// Call it when idle_check_is_valid was false, and the other threads have been looked at. Looks once
// more at what the first ones have used: if the process shows no more than that since
// idle_check_is_valid, then it is known what the process shows beyond all threads.
void idle_check_settle(struct idle_check *check, const struct target *target);
