// SPDX-License-Identifier: MIT
#include "stuck_worker.h"

#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "holding.h"
#include "memory.h"
#include "proc.h"
#include "process_list.h"

enum {
	// Looks in the same wait: where nothing is lost, for a held thread else, and for one who is
	// to end.
	KEPT_LOOKS = 2,
	HELD_LOOKS = 10,
	END_LOOKS = 10,
	ALL_LOOKS = 4,            // of that many, one asks all threads of the machine
	MAX_LATE_NS = 1000000000, // after sampling should have ended
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

// True if no signal but SIGKILL may ever end its wait. That for PTRACE_SEIZE begins again after
// each signal, while a thread of the process is in exec.
static bool is_deaf(pid_t worker)
{
	struct proc_syscall call;
	struct proc_stat stat;

	if (!proc_read_stat(-1, worker, worker, &stat))
		return false;
	return stat.state == 'D' ||
	       (stat.state == 'S' && proc_read_syscall(-1, worker, worker, &call) &&
	        !call.running && call.nr == SYS_ptrace);
}

// True if it is so, and the worker has not run since the last look.
static bool is_in_same_wait(struct stuck_worker *worker)
{
	struct proc_schedstat figures;

	if (!is_deaf(worker->pid) || !proc_read_schedstat(-1, worker->pid, worker->pid, &figures)) {
		worker->runs = 0;
		return false;
	}
	const bool same = figures.runs == worker->runs;
	worker->runs = figures.runs;
	return same;
}

// A wait once sampling is over may be for a slow file: the metrics are written then.
static bool is_to_end(const struct stuck_worker *worker, int64_t now_ns)
{
	const int64_t due_ns = holding_due_ns();

	return !holding_is_over() &&
	       (worker->is_to_end || (due_ns && now_ns > due_ns + MAX_LATE_NS));
}

// Decides whether it is to be killed by now.
static bool is_lost(struct stuck_worker *worker, int64_t now_ns)
{
	if (worker->looks >= END_LOOKS && is_to_end(worker, now_ns))
		return true;
	if (worker->looks < (worker->is_kept ? KEPT_LOOKS : HELD_LOOKS) ||
	    worker->looks % ALL_LOOKS != KEPT_LOOKS)
		return false;
	worker->holds = holds_any(worker->pid);
	return worker->holds;
}

static void tell(struct stuck_worker *worker)
{
	if (!worker->is_told)
		fprintf(stderr,
		        "profiler: the sampling process has been stuck in the kernel for %.1f s%s; "
		        "it is killed, and sampling ends here\n",
		        (double)worker->looks * STUCK_WORKER_LOOK_NS / NS_PER_SECOND,
		        worker->holds ? " with a thread of the target stopped"
		                      : " and could not end");
	worker->is_told = true;
}

// True if it has been at the copy of one thread for too long.
static bool copies_without_end(struct stuck_worker *worker)
{
	const unsigned int hold = holding_now();
	clockid_t clock;

	if (hold == 0 || clock_getcpuclockid(worker->pid, &clock) != 0) {
		worker->hold = 0;
		return false;
	}
	const int64_t now_ns = clock_read_ns(clock);
	if (hold != worker->hold) {
		worker->hold = hold;
		worker->hold_ns = now_ns;
	}
	return now_ns - worker->hold_ns > worker->max_copy_ns;
}

static void tell_fault(struct stuck_worker *worker)
{
	if (!worker->is_told)
		fprintf(
		    stderr,
		    "profiler: a bug in the profiler left a thread stopped: the sampling process "
		    "is killed, so the target continues; please report this\n");
	worker->is_told = true;
	worker->is_kept = false;
}

bool stuck_worker_look(struct stuck_worker *worker)
{
	const int64_t now_ns = clock_now_ns();

	if (now_ns - worker->looked_ns < STUCK_WORKER_LOOK_NS)
		return false;
	worker->looked_ns = now_ns;
	if (worker->kill_ns && now_ns >= worker->kill_ns)
		return true;
	if (copies_without_end(worker)) {
		tell_fault(worker);
		return true;
	}
	worker->looks = is_in_same_wait(worker) ? worker->looks + 1 : 0;
	if (worker->looks < KEPT_LOOKS || !is_lost(worker, now_ns))
		return false;
	// What was asked meanwhile, of all threads perhaps, has taken its time.
	if (!is_in_same_wait(worker)) {
		worker->looks = 0;
		return false;
	}
	tell(worker);
	return true;
}

// True while the process is there which had that start time.
static bool is_alive(const struct stuck_worker *worker)
{
	struct proc_stat stat;

	return proc_read_stat(-1, worker->pid, worker->pid, &stat) &&
	       stat.start_time == worker->start_time && stat.state != 'Z';
}

void stuck_worker_init_orphan(struct stuck_worker *worker, pid_t pid)
{
	struct proc_stat stat = {0};

	proc_read_stat(-1, pid, pid, &stat);
	*worker = (struct stuck_worker){.pid = pid, .start_time = stat.start_time};
}

void stuck_worker_look_at_orphan(struct stuck_worker *worker)
{
	const int64_t now_ns = clock_now_ns();

	if (now_ns - worker->looked_ns < STUCK_WORKER_LOOK_NS)
		return;
	worker->looked_ns = now_ns;
	worker->looks = is_alive(worker) && is_in_same_wait(worker) ? worker->looks + 1 : 0;
	if (worker->looks >= END_LOOKS && !holding_is_over())
		kill(worker->pid, SIGKILL);
}
