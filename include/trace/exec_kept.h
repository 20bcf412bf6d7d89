// SPDX-License-Identifier: MIT
// exec_kept: what a process keeps over exec, but a child that it forks does not get. A wrapped
// command, which is such a child, is to find it as if whoever started the profiler had executed the
// command itself.
//
// The first process of a PID namespace, as a container's command is, gets all orphans there; below
// the profiler, which is that process then, the command gets its own.
//
// What is not handed over: children, locks of fcntl(2), and the signal at the parent's end
// (PR_SET_PDEATHSIG) stay with the process that was started.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

enum { EXEC_KEPT_TIMERS = 3 }; // ITIMER_REAL, ITIMER_VIRTUAL and ITIMER_PROF: setitimer(2)

// How the process is scheduled: sched_setattr(2).
struct exec_kept_schedule {
	uint32_t size; // of this; 0: as its children
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

struct exec_kept {
	sigset_t mask;                                // signals that are blocked
	struct itimerval timers[EXEC_KEPT_TIMERS];    // as of alarm(2)
	bool is_subreaper;                            // prctl(2), PR_SET_CHILD_SUBREAPER
	unsigned long timer_slack_ns, usual_slack_ns; // prctl(2), PR_SET_TIMERSLACK; and with 0
	struct exec_kept_schedule schedule;           // what a fork would reset or refuse
	siginfo_t *pending;                           // signals that were blocked, in their order
	size_t n_pending, capacity;
};

// Takes it from this process, which may block more signals than `mask`: those were blocked in exec.
// Call it before any signal's disposition changes, which may drop those that are pending.
void exec_kept_take(const sigset_t *mask, struct exec_kept *ret);

// Call it before this process forks the one that is to get it.
void exec_kept_prepare(const struct exec_kept *kept);

// Gives it to this process, which blocks the mask's signals by now.
void exec_kept_give(const struct exec_kept *kept);
void exec_kept_deinit(struct exec_kept *kept);
