// SPDX-License-Identifier: MIT
// supervise: the profiler in two processes, so that nothing that is done to the one that the user
// sees happens in the middle of a stop.
//
// When a tracer is killed, the kernel lets its tracees go, but a system call that is just being
// mended (syscall_mend.h) stays cut. A tracer that is stopped (SIGSTOP, Ctrl-Z) keeps what it
// holds. So the process that the shell started only waits, passes signals on, and ends as the
// worker ends; the worker samples, in a process group of its own, which no terminal and no shell
// stops; if it is stopped all the same, it is continued at once. When the first one is gone, the
// worker ends sampling as if it had been asked to.
//
// A wrapped command's shell sees the first process only, which therefore stops and goes on as the
// command does: not when the terminal's Ctrl-Z comes, which a command may catch or ignore.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct job;

// The worker's name in /proc/PID/comm, by which other profilers know it (diagnose.c).
#define SUPERVISE_WORKER_NAME "profiler-worker"

// How the profiler was started: what a wrapped command is to find again.
struct origin {
	pid_t supervisor;
	struct job *job; // shared with the supervisor; NULL: no memory for it
	pid_t group;     // the process group, the terminal's perhaps
	sigset_t mask;
	struct sigaction child;       // of SIGCHLD
	unsigned long timer_slack_ns; // prctl(2)
};

// Runs work(context, origin) in a worker process, and returns in both what it returned, an exit
// status, which is to be given to supervise_part at the very end.
// `wrapping`: the terminal's Ctrl-C and Ctrl-\ are for the wrapped command, and not passed on.
// `worker_fd`: a descriptor that is the worker's alone; -1: none.
int supervise(int (*work)(void *context, const struct origin *origin), void *context, bool wrapping,
              int worker_fd);

// Returns the status, in the supervisor as soon as the worker has come here; the worker stays while
// calls of the target go on that a stop has cut short (parting.h), and says so.
int supervise_part(int status);

// In the worker: the wrapped command was stopped by this signal; 0: it runs on, or has ended. Makes
// the supervisor do the same.
void supervise_follow(const struct origin *origin, int command, int stop_signal);

// True if the supervisor is stopped by job control.
bool supervise_is_stopped(const struct origin *origin);
