// SPDX-License-Identifier: MIT
// tracee_stop: reads stops of a traced thread as waitpid(2) reports them.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tracee_stop {
	int signal;       // to be delivered at the release; 0: none
	bool interrupted; // stopped because of tracee_interrupt alone
	bool group_stop;  // stopped by job control, and to stay so after the release
	bool resumes;     // the system call that was interrupted begins again (tracee_registers)
	bool exec;        // stopped in PTRACE_EVENT_EXEC
	bool syscall;     // stopped at the entry or end of a system call
	int64_t call;     // the number of the system call that it is in; -1: none, or not known
	int exit_status;  // TRACEE_EXITED: as waitpid gives it
};

// True if this process can stop any thread at all (no seccomp filter is in the way of ptrace).
bool tracee_stop_is_permitted(void);

// Does what waitpid(2) does with __WALL and these flags, but leaves a stop to be reported again
// until the thread is resumed. If the tracer is killed before that, the kernel gives the thread the
// signal with which it has stopped; if the stop had been taken, the signal would be lost
// (ptrace_stop and wait_task_stopped in the kernel's source: exit_code). The end of a thread is
// taken.
pid_t tracee_stop_wait(int tid, int flags, int *ret_status);

// True if the status is a PTRACE_EVENT_EXEC. The thread may not be the one that had this tid
// before: a thread that executes a program gets the main thread's tid.
bool tracee_stop_is_exec(int status);

// Call it before acting on a status of tracee_stop_wait. Takes a stop after an exec: until it is
// taken, the kernel refuses all requests for a thread whose tid has changed
// (looks_like_a_spurious_pid in kernel/ptrace.c), so that what was meant for the old thread of that
// tid never reaches the new one.
void tracee_stop_take(int tid, int status);

// Turns a status of waitpid into *ret. False if it is an exit.
bool tracee_stop_read(int status, struct tracee_stop *ret);

// True if the program is not to notice the stop. A signal that it ignores interrupts its calls only
// because it is traced.
bool tracee_stop_is_ours(int tid, const struct tracee_stop *stop);

// Lets go of threads that nobody has seized: what a seized thread makes by clone(2) with
// CLONE_PTRACE is traced from its birth, and stands. One that was killed since is reaped, as its
// parent cannot see its end before. Call it when SIGCHLD came. It ends at a thread that is seized,
// and stands or has ended: call it again when that one has been let go.
void tracee_stop_let_strays_go(bool (*is_seized)(int tid));
