// SPDX-License-Identifier: MIT
// first_process: what the profiler does as the first process of a PID namespace, as a container's
// is.
//
// What is sent to it from outside of the namespace is for the command that it wraps, which would be
// the first process alone. And it gets the orphans of all others there, which nobody else can reap.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct first_process {
	const _Atomic int *command; // its pid; 0: it does not run yet; -1: it has ended; or NULL
	sigset_t early;             // came before it ran
};

bool first_process_is(void);

// Blocks what may be sent from outside, and adds it to the signals that are awaited. Nothing where
// this is no first process.
void first_process_await(sigset_t *awaited);

// Passes a signal on to the command, or keeps it until that runs, if it is from outside, which its
// si_code and si_pid tell. False: it is not, or there is no command.
bool first_process_pass(struct first_process *first, int number, int code, pid_t pid);

// Passes on what was kept, if the command runs by now. Call it from time to time; true: something
// is still kept.
bool first_process_pass_early(struct first_process *first);

// Returns a child that has ended and has not been waited for; 0: none. Where it is not one that
// this process has started, it is an orphan to be reaped.
pid_t first_process_ended_child(void);
