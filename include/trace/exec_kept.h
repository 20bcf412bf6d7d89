// SPDX-License-Identifier: MIT
// exec_kept: what a process keeps over exec, but a child that it forks does not get. A wrapped
// command, which is such a child, is to find it as if whoever started the profiler had executed the
// command itself.
//
// What is not handed over: children, locks of fcntl(2), and the signal at the parent's end
// (PR_SET_PDEATHSIG) stay with the process that was started.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>

enum { EXEC_KEPT_TIMERS = 3 }; // ITIMER_REAL, ITIMER_VIRTUAL and ITIMER_PROF: setitimer(2)

struct exec_kept {
	sigset_t mask;                             // signals that are blocked
	struct itimerval timers[EXEC_KEPT_TIMERS]; // as of alarm(2)
	bool is_subreaper;                         // prctl(2), PR_SET_CHILD_SUBREAPER
	siginfo_t *pending;                        // signals that were blocked, in their order
	size_t n_pending, capacity;
};

// Takes it from this process, which may block more signals than `mask`: those were blocked in exec.
// Call it before any signal's disposition changes, which may drop those that are pending.
void exec_kept_take(const sigset_t *mask, struct exec_kept *ret);

// Gives it to this process, which blocks the mask's signals by now.
void exec_kept_give(const struct exec_kept *kept);
void exec_kept_deinit(struct exec_kept *kept);
