// SPDX-License-Identifier: MIT
// floor HZ [PID]: what a sampler cannot do without, to set the profiler beside: wakes HZ times a
// second with raised priority; with PID, stops each of its threads that has run since the last
// time, with no more calls than that takes, and lets it go. Ends with SIGINT or SIGTERM.
#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "proc.h"
#include "target.h"

enum { POLL_NS = 20000, WAIT_NS = 200000, MAX_THREADS = 64 };

static volatile sig_atomic_t over;

static void end(int signal)
{
	(void)signal;
	over = 1;
}

struct stopped {
	struct target_thread *thread;
	uint64_t cpu_ns; // when it was last stopped
	bool pending;
};

static void stop(struct stopped *one)
{
	const int tid = one->thread->tid;

	one->pending = ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 &&
	               ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0;
}

static bool has_run(const struct stopped *one, int pid)
{
	struct proc_schedstat now;

	return proc_read_schedstat(one->thread->schedstat_fd, pid, one->thread->tid, &now) &&
	       now.cpu_ns != one->cpu_ns;
}

// Copies what the profiler's samples cannot do without, too: the registers.
static bool let_go(struct stopped *one, int pid)
{
	const int tid = one->thread->tid;
	struct user_regs_struct registers;
	struct iovec vector = {.iov_base = &registers, .iov_len = sizeof(registers)};
	struct proc_schedstat now;
	int status;

	if (waitpid(tid, &status, WNOHANG | __WALL) == 0)
		return false;
	one->pending = false;
	if (!WIFSTOPPED(status))
		return true;
	ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &vector);
	if (proc_read_schedstat(one->thread->schedstat_fd, pid, tid, &now))
		one->cpu_ns = now.cpu_ns;
	const int signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
	ptrace(PTRACE_DETACH, tid, NULL, (void *)(uintptr_t)signal);
	return true;
}

static size_t let_all_go(struct stopped *all, size_t n, int pid)
{
	size_t n_pending = 0;

	for (size_t i = 0; i < n; i++)
		if (all[i].pending)
			n_pending += !let_go(&all[i], pid);
	return n_pending;
}

// Those that another CPU runs stop soon, and are polled for; the others when this one sleeps.
static void stop_all(struct stopped *all, size_t n, int pid)
{
	const int64_t start_ns = clock_now_ns();
	const size_t n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	sigset_t signals;
	size_t n_asked = 0, n_pending;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	for (size_t i = 0; i < n; i++)
		if (!all[i].pending && has_run(&all[i], pid))
			stop(&all[i]);
	for (size_t i = 0; i < n; i++)
		n_asked += all[i].pending;
	while ((n_pending = let_all_go(all, n, pid)) > 0) {
		const int64_t waited_ns = clock_now_ns() - start_ns;
		if (waited_ns > WAIT_NS)
			return;
		if (waited_ns > POLL_NS || n_asked - n_pending + 1 >= n_cpus) {
			const struct timespec left = clock_timespec(WAIT_NS - waited_ns);
			sigtimedwait(&signals, NULL, &left);
		}
	}
}

int main(int argc, char **argv)
{
	const double hz = argc > 1 ? atof(argv[1]) : 0;
	const int pid = argc > 2 ? atoi(argv[2]) : 0;
	const struct sched_param priority = {.sched_priority = 1};
	struct stopped all[MAX_THREADS];
	struct target target = {0};
	sigset_t signals;
	size_t n = 0;

	if (hz <= 0 || (pid && target_open(pid, false, &target)))
		return 2;
	signal(SIGINT, end);
	signal(SIGTERM, end);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (pid)
		target_list_threads(&target, -1);
	for (; n < target.n_threads && n < MAX_THREADS; n++)
		all[n] = (struct stopped){.thread = target.threads[n]};
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority) != 0)
		perror("usual priority");
	const int64_t period_ns = (int64_t)((double)NS_PER_SECOND / hz);
	for (int64_t at_ns = clock_now_ns(); !over; at_ns += period_ns) {
		const struct timespec at = clock_timespec(at_ns);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		if (pid)
			stop_all(all, n, pid);
	}
	while (let_all_go(all, n, pid) > 0)
		usleep(1000);
	return 0;
}
