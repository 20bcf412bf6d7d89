// SPDX-License-Identifier: MIT
#include "tracee_rescue.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "priority.h"
#include "rescues.h"
#include "syscall_rest.h"
#include "tracee_registers.h"
#include "tracee_stop.h"

enum { MAX_RESCUE_S = 1 };

static void interrupt(int tid, struct syscall_rest *rest)
{
	(void)rest;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0)
		ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	else
		rescues_drop(tid);
}

// Gives a stopped thread the result of the whole call, if it is still in the rest.
static void put_right(int tid, struct syscall_rest *rest)
{
	struct thread_registers thread;

	if (!tracee_registers_get(tid, &thread) || !syscall_rest_is_inside(rest, &thread))
		return;
	syscall_rest_leave(rest, &thread);
	tracee_registers_set(tid, &thread);
}

static void rescue_stopped(int tid, struct syscall_rest *rest)
{
	struct tracee_stop stop;
	int status;
	const pid_t pid = tracee_stop_wait(tid, WNOHANG, &status);

	if (pid == 0)
		return; // it is running
	if (pid == tid && tracee_stop_read(status, &stop)) {
		put_right(tid, rest);
		ptrace(PTRACE_DETACH, tid, NULL, (void *)(uintptr_t)stop.signal);
	}
	rescues_drop(tid);
}

static void rescue_all(void)
{
	struct priority priority;
	sigset_t set;

	priority_raise(&priority);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	signal(SIGALRM, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	alarm(MAX_RESCUE_S); // ends even a wait for PTRACE_SEIZE (tracee.c)
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	rescues_each(interrupt);
	while (rescues_each(rescue_stopped) > 0)
		sigwaitinfo(&set, NULL);
}

void tracee_rescue(void)
{
	if (!rescues_any())
		return;
	const pid_t child = fork();
	if (child == 0) {
		rescue_all();
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}
