// SPDX-License-Identifier: MIT
// launch: starts a command under the profiler, and holds it at its first instruction.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tracee.h"

struct error;
struct events;
struct origin;

struct launch {
	int pid;
	bool held;     // it is still at its first instruction
	bool untraced; // it was executed untraced, because of its file's privileges
	const struct origin *origin;
	int64_t told_ns; // when the supervisor was last told, or was seen to do the same
	int stop_signal; // the signal by which job control has stopped it; 0: it is not stopped
	struct tracee_stop stop; // to release it with
	bool ended;              // its exit status is known
	int exit_status;         // as waitpid gives it
};

// Starts the command (found along PATH) with the stdin, stdout, stderr, process group, signal mask
// and dispositions that the profiler was started with, and holds it after exec, before its first
// instruction. Does not hold a command that gets privileges which the kernel withholds from the
// profiler's tracees (privileged_exec.h). If the command cannot be run, the error has status 126 or
// 127. `origin` is borrowed for the launch's life.
struct error *launch_start(char *const command[], const struct events *events,
                           const struct origin *origin, struct launch *ret);

// Lets the command run.
void launch_release(struct launch *launch);

// True if the command has ended. Never blocks. Tells the profiler's shell when the command stops or
// continues (supervise.h).
bool launch_poll(struct launch *launch);

// Waits until the command ends; tells its shell as launch_poll does.
void launch_wait(struct launch *launch);

// Returns the exit status to end with for the command: its own, or 128 + signal.
int launch_exit_code(const struct launch *launch);
