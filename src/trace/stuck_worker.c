// SPDX-License-Identifier: MIT
#include "stuck_worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"
#include "proc.h"
#include "process_list.h"

enum {
	HELD_LOOKS = 3, // in the same wait, while it holds a thread
	END_LOOKS = 10, // in the same wait for a process, if it was asked to end
};

static bool has_stopped(pid_t tracer, int tid)
{
	struct proc_status status;

	return proc_read_status(tid, &status) && status.tracer_pid == tracer && status.state == 't';
}

static bool has_stopped_any_of(pid_t tracer, int pid)
{
	size_t n;
	_cleanup_free_ int *tids = process_threads(pid, &n);

	for (size_t i = 0; i < n; i++)
		if (has_stopped(tracer, tids[i]))
			return true;
	return false;
}

// Asks all threads of the machine, none of which waits for a process's memory to answer.
static bool holds_any(pid_t worker)
{
	size_t n;
	_cleanup_free_ int *pids = process_all(&n);

	for (size_t i = 0; i < n; i++)
		if (has_stopped_any_of(worker, pids[i]))
			return true;
	return false;
}

// True if it waits where no signal but SIGKILL reaches it, and has not run since the last look.
static bool is_in_same_wait(struct stuck_worker *worker)
{
	struct proc_stat stat;
	struct proc_schedstat figures;

	if (!proc_read_stat(-1, worker->pid, worker->pid, &stat) || stat.state != 'D' ||
	    !proc_read_schedstat(-1, worker->pid, worker->pid, &figures)) {
		worker->runs = 0;
		return false;
	}
	const bool same = figures.runs == worker->runs;
	worker->runs = figures.runs;
	return same;
}

// True if it waits for what a process has: its memory, or a file of /proc that tells of it. Another
// file may be slow, or frozen while a backup is made of it: the profile is written in the end.
static bool waits_for_process(pid_t worker)
{
	static const char proc[] = "/proc/";
	char link[64], file[sizeof(proc)];
	struct proc_syscall call;

	if (!proc_read_syscall(-1, worker, worker, &call) || call.running)
		return false;
	if (call.nr == SYS_process_vm_readv)
		return true;
	if (call.nr != SYS_read && call.nr != SYS_pread64 && call.nr != SYS_ioctl)
		return false;
	snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)worker, (int)call.args[0]);
	const ssize_t n = readlink(link, file, sizeof(file));
	return n > 0 && strncmp(file, proc, strlen(proc)) == 0;
}

static void tell(struct stuck_worker *worker, bool holds)
{
	if (!worker->is_told)
		fprintf(stderr,
		        "profiler: the kernel has kept the sampling process waiting for %u s%s; it "
		        "is killed, and samples that are not in a recording or window yet are "
		        "lost\n",
		        worker->looks * STUCK_WORKER_LOOK_S,
		        holds ? " while it held a thread of the target"
		              : ", so that it could not end as it was asked to");
	worker->is_told = true;
}

bool stuck_worker_look(struct stuck_worker *worker)
{
	const int64_t now_ns = clock_now_ns();

	if (now_ns - worker->looked_ns < STUCK_WORKER_LOOK_S * NS_PER_SECOND)
		return false;
	worker->looked_ns = now_ns;
	worker->looks = is_in_same_wait(worker) ? worker->looks + 1 : 0;
	const bool holds = worker->looks >= HELD_LOOKS && holds_any(worker->pid);
	const bool cannot_end = worker->is_to_end && worker->looks >= END_LOOKS;
	if (!holds && !(cannot_end && waits_for_process(worker->pid)))
		return false;
	tell(worker, holds);
	return true;
}
