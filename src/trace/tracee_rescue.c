// SPDX-License-Identifier: MIT
#include "tracee_rescue.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "priority.h"
#include "rescues.h"
#include "stay_behind.h"
#include "syscall_rest.h"
#include "tracee_registers.h"
#include "tracee_stop.h"

enum {
	MAX_ASK_S = 1,            // until all are asked to stop
	MAX_WAIT_NS = 1000000000, // of who has asked for it
	LOOK_NS = 1000000,
};

// Those that were asked to stop. Others may have got to a thread first: the supervisor and the
// watcher of one that stays (parting) can both be told that the worker has died.
static struct asked {
	int tid;
	struct syscall_rest *rest;
} asked[MAX_RESCUES];
static size_t n_asked;

static void ask(int tid, struct syscall_rest *rest)
{
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0) {
		ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
		asked[n_asked++] = (struct asked){tid, rest};
	} else if (errno == ESRCH) {
		rescues_drop(tid);
	}
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

// Returns how many have neither stopped nor ended yet.
static size_t rescue_stopped(void)
{
	for (size_t i = 0; i < n_asked;) {
		const int tid = asked[i].tid;
		struct tracee_stop stop;
		int status;
		const pid_t pid = tracee_stop_wait(tid, WNOHANG, &status);
		if (pid == 0) {
			i++;
			continue;
		}
		if (pid == tid && tracee_stop_read(status, &stop)) {
			put_right(tid, asked[i].rest);
			ptrace(PTRACE_DETACH, tid, NULL, (void *)(uintptr_t)stop.signal);
		}
		rescues_drop(tid);
		asked[i] = asked[--n_asked];
	}
	return n_asked;
}

// Who stops has a result that is wrong without us: neither the end of a terminal nor of a service
// is to end the wait for that.
static void rescue_all(void)
{
	struct priority priority;
	sigset_t set;

	priority_raise(&priority);
	sigfillset(&set);
	sigdelset(&set, SIGALRM);
	signal(SIGALRM, SIG_DFL);
	sigprocmask(SIG_SETMASK, &set, NULL);
	alarm(MAX_ASK_S); // ends even a wait for PTRACE_SEIZE (tracee.c)
	rescues_each(ask);
	alarm(0);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	while (rescue_stopped() > 0)
		sigwaitinfo(&set, NULL);
}

void tracee_rescue(void)
{
	static pid_t child; // may go on still

	if (!rescues_any() || (child > 0 && waitpid(child, NULL, WNOHANG) == 0))
		return;
	child = fork();
	if (child == 0) {
		stay_behind();
		rescue_all();
		_exit(0);
	}
	const struct timespec look = clock_timespec(LOOK_NS);
	const int64_t until_ns = clock_now_ns() + MAX_WAIT_NS;
	while (child > 0 && waitpid(child, NULL, WNOHANG) == 0 && clock_now_ns() < until_ns)
		nanosleep(&look, NULL);
}
