// SPDX-License-Identifier: MIT
// supervise: runs the profiler in two processes, so that nothing that is done to the one that the
// user sees happens in the middle of a stop.
//
// When a tracer is killed, the kernel lets its tracees go, but a system call that is just being
// mended (syscall_mend.h) stays cut. A tracer that is stopped (SIGSTOP, Ctrl-Z) keeps what it
// holds. So the process that the shell started only waits, passes signals on, and ends when the
// worker ends, in the same way. The worker samples, in a process group of its own, which no
// terminal and no shell stops; if it is stopped all the same, it is continued at once. If the first
// process is gone, the worker ends sampling as if it had been asked to.
//
// A third process, the writer, keeps what the worker tells while it samples, and writes the profile
// when that is over, also if the worker is killed, or waits in the kernel without end.
//
// A wrapped command's shell sees only the first process, which therefore stops and continues when
// the command does; not when the terminal's Ctrl-Z comes, since a command may catch or ignore that.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "exec_kept.h"

struct job;

// The worker's name in /proc/PID/comm, by which other profilers know it (diagnose.c).
#define SUPERVISE_WORKER_NAME "profiler-worker"

// What the worker and the writer have of each other: sockets.
struct supervise_ends {
	int stream; // from the worker to the writer, which says first that it is ready; 0: there is
	            // no writer
	int files;  // passed_files.h
};

// How the profiler was started: a wrapped command is to find the same.
struct origin {
	pid_t supervisor;
	struct job *job; // shared with the supervisor; NULL: no memory for it
	pid_t group;     // the process group; perhaps the terminal's; 0: of an outer PID namespace
	struct sigaction child; // of SIGCHLD
	struct exec_kept kept;  // the mask alone where no command is wrapped
	struct supervise_ends to_writer;
};

// Whom the writer's process has to do with.
struct supervise_writer {
	struct supervise_ends ends;
	pid_t supervisor, worker;
};

// What is run. The functions return an exit status.
struct supervised {
	int (*work)(void *context, const struct origin *origin);
	int (*write)(void *context, const struct supervise_writer *writer); // NULL: no writer
	void *context;
	bool is_kept;         // the run ends well if the worker has to be killed
	bool may_be_given_up; // by SIGUSR2 to the supervisor: the writer, which traces nobody, is
	                      // killed at once; the worker is asked to end, and killed after 10 s
	bool wrapping; // the terminal's Ctrl-C and Ctrl-\ are for the wrapped command, and not
	               // passed on
	int worker_fd; // a descriptor that only the worker keeps; -1: none
	// The origin's, where the caller has blocked signals so that none is lost on the way here,
	// and now ours; NULL: that of now.
	const struct exec_kept *kept;
};

// Closes them, in a process that a writer has started: who samples is to see the writer's end.
void supervise_close_ends(const struct supervise_ends *ends);

// Runs `work` in a worker process, and `write` in the writer's, whose signals are blocked: those
// that end a run are pending in it. Returns in all of them, with the exit status; give it to
// supervise_part at the very end. The supervisor's is the writer's if that has failed, else the
// worker's.
int supervise(const struct supervised *supervised);

// Returns the status, in the supervisor as soon as the worker has come here. The worker stays while
// calls of the target continue that a stop has cut short (parting.h), and says so.
int supervise_part(int status);

// Call it in the worker when the wrapped command has been forked: the worker leaves its group, if
// it could not find that by a number, for lack of one in this PID namespace.
void supervise_leave_group(const struct origin *origin);

// Call it in the worker when the wrapped command runs; 0: it has ended.
void supervise_note_command(const struct origin *origin, int command);

// The pid of the command that a supervisor's worker will run, as first_process.h has it. Call it in
// the process that forks the supervisor; NULL: no memory for it.
const _Atomic int *supervise_command(void);

// Call it in the worker when this signal has stopped the wrapped command; 0: it runs on, or has
// ended. Makes the supervisor do the same.
void supervise_follow(const struct origin *origin, int command, int stop_signal);

// True if the supervisor is stopped by job control.
bool supervise_is_stopped(const struct origin *origin);
