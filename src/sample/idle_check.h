// SPDX-License-Identifier: MIT
// idle_check: have the threads that were asleep slept on? Told for all of them at once.
//
// Two ways. Best by how often the threads of the process were given a CPU (thread_sums.h): the same
// sum twice, and none has run.
//
// Where that is not to be had, two figures tell it together. A thread that has run since has used
// CPU time, and the process's CPU clock (clock_getcpuclockid(3)) is the sum of what its threads
// have used, as /proc/PID/task/TID/schedstat shows it for each. But the kernel adds what a thread
// uses only when it is switched off, or at the next tick of the scheduler (kernel/sched/cputime.c,
// thread_group_cputime): one that has just begun to run is not seen. That one is among the runnable
// threads of the machine (load.h).
//
// Neither tells of a thread that was woken and waits for a CPU still: its stack is the sleeper's,
// but it does not sleep. It, too, is among the machine's runnable threads.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proc.h"

struct load;
struct target;
struct thread_sums;

struct idle_check {
	const struct thread_sums *sums; // borrowed
	const struct load *load;        // likewise
	struct proc_schedstat rest;     // of the sums, or the CPU clock: what no live thread shows
	bool known;                     // the rest is
	uint64_t runs;                  // the sum when it was read last
	bool has_runs;                  // it was
	int64_t clock_ns;               // as last read; -1: never, or it cannot be read
};

void idle_check_init(struct idle_check *check, const struct thread_sums *sums,
                     const struct load *load);

enum idle_answer {
	IDLE_NO,     // some thread has run, or so it seems
	IDLE_UNSURE, // only one that has just begun to run may have
	IDLE_YES,
};

// Before the first looks, and then at each tick after one at which all threads were found asleep,
// n_others being load_others just before: has none run since then?
enum idle_answer idle_check_since_last(struct idle_check *check, const struct target *target,
                                       long n_others);

// Those threads that may run were looked at just now. True: no other (thread->look_later) has run
// since its last look; `has_woken`: one may have been woken, and wait for a CPU still.
bool idle_check_holds(struct idle_check *check, const struct target *target, bool has_woken);

// It does not hold, and so the others were looked at, too. Looks once more at what the first ones
// have used: if the process shows no more than that since idle_check_holds, what it shows beyond
// all threads is known.
void idle_check_settle(struct idle_check *check, const struct target *target);
