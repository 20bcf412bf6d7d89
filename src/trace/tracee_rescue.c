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
#include "parting.h"
#include "priority.h"
#include "rescues.h"
#include "syscall_mend.h"
#include "syscall_messages.h"
#include "tracee_registers.h"
#include "tracee_stop.h"

enum {
	MAX_ASK_S = 1,            // until all are asked to stop
	MAX_WAIT_NS = 1000000000, // of who has asked for it
	LOOK_NS = 1000000,
	LOOK_AGAIN_S = 1, // for what no signal tells
};

// Those that were asked to stop. Others may have got to a thread first: the supervisor and the
// watcher of one that stays (parting) can both be told that the worker has died.
static struct asked {
	int tid;
	struct syscall_rest *rest;
} asked[MAX_RESCUES];
static size_t n_asked;

// Asks a thread, unless it has left the rest long ago: it may be in another call by now, or its
// number another program's.
static void ask(int tid, struct syscall_rest *rest)
{
	if (!syscall_rest_may_be_inside(rest)) {
		rescues_drop(tid);
		return;
	}
	asked[n_asked++] = (struct asked){tid, rest}; // first: SIGALRM may come any time
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0) {
		ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
		return;
	}
	n_asked--;
	if (errno == ESRCH)
		rescues_drop(tid);
}

// Gives a stopped thread the result of the whole call, if it is still in the rest. If not, it is
// not to notice the stop.
static void put_right(const struct asked *asked_one, const struct tracee_stop *stop)
{
	const int tid = asked_one->tid;
	struct thread_registers thread;

	if (!tracee_registers_get(tid, &thread))
		return;
	if (syscall_rest_is_inside(asked_one->rest, &thread)) {
		syscall_messages_take_error(asked_one->rest);
		syscall_rest_leave(asked_one->rest, &thread);
	} else {
		const struct syscall_caller caller =
		    tracee_registers_caller(tid, asked_one->rest->caller.pid);
		if (!tracee_stop_is_ours(tid, stop) || !syscall_mend_at_once(&caller, &thread))
			return;
	}
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
		const bool has_stopped = pid == tid && tracee_stop_read(status, &stop);
		if (has_stopped)
			put_right(&asked[i], &stop);
		rescues_drop(tid); // first: then nobody else asks it any more
		if (has_stopped)
			ptrace(PTRACE_DETACH, tid, NULL, (void *)(uintptr_t)stop.signal);
		asked[i] = asked[--n_asked];
	}
	return n_asked;
}

// Who stops has a result that is wrong without us: neither the end of a terminal nor of a service
// is to end the wait for that. No signal tells that another thread's exec has taken the number of
// one that has ended.
static __attribute__((noreturn)) void rescue_asked(void)
{
	const struct timespec look = {.tv_sec = LOOK_AGAIN_S};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	while (rescue_stopped() > 0)
		sigtimedwait(&set, NULL, &look);
	_exit(0);
}

// Goes on with those that were asked by then: the kernel would begin PTRACE_SEIZE again.
static void on_alarm(int number)
{
	(void)number;
	rescue_asked();
}

static __attribute__((noreturn)) void rescue_all(void)
{
	struct priority priority;
	sigset_t set;

	priority_raise(&priority);
	sigfillset(&set);
	sigdelset(&set, SIGALRM);
	signal(SIGALRM, on_alarm);
	sigprocmask(SIG_SETMASK, &set, NULL);
	alarm(MAX_ASK_S); // ends even a wait for PTRACE_SEIZE (tracee.c)
	rescues_each(ask);
	alarm(0);
	rescue_asked();
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
	}
	const struct timespec look = clock_timespec(LOOK_NS);
	const int64_t until_ns = clock_now_ns() + MAX_WAIT_NS;
	while (child > 0 && waitpid(child, NULL, WNOHANG) == 0 && clock_now_ns() < until_ns)
		nanosleep(&look, NULL);
}
