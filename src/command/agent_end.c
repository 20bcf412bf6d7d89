// SPDX-License-Identifier: MIT
#include "agent_end.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"
#include "proc.h"
#include "process_list.h"
#include "supervise.h"
#include "window_files.h"

// A pid that is another's by now has another parent: what the descriptor stands for cannot change
// any more.
static void kill_child_of(int parent, int pid, const char *wanted)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct proc_status status;
	char name[PROC_NAME_SIZE];

	if (fd >= 0 && proc_read_status(pid, &status) && status.ppid == parent &&
	    proc_read_name(pid, pid, name) && strcmp(name, wanted) == 0)
		syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}

// Those alone that have the name: beside them are the watcher of a call (parting.h), and what the
// supervisor starts to put one right.
static void kill_children(int parent, const char *name)
{
	size_t n;
	_cleanup_free_ int *pids = process_children(parent, &n);

	for (size_t i = 0; i < n; i++)
		kill_child_of(parent, pids[i], name);
}

static void kill_window_writers(pid_t sampler)
{
	size_t n;
	_cleanup_free_ int *workers = process_children(sampler, &n);

	for (size_t i = 0; i < n; i++)
		kill_children(workers[i], WINDOW_WRITER_NAME);
}

void agent_end_tell(struct agent_end *end, pid_t sampler)
{
	if (!end->is_told)
		kill(sampler, SIGTERM);
	end->is_told = true;
}

void agent_end_over_limit(struct agent_end *end, pid_t sampler)
{
	if (!end->over_limit_ns)
		end->over_limit_ns = clock_now_ns();
	agent_end_tell(end, sampler);
	kill_window_writers(sampler);
}

bool agent_end_is_over_limit(const struct agent_end *end)
{
	return end->over_limit_ns != 0;
}

void agent_end_press(const struct agent_end *end, pid_t sampler)
{
	const int64_t late_ns =
	    end->over_limit_ns ? clock_now_ns() - end->over_limit_ns - AGENT_END_GRACE_NS : 0;

	if (late_ns <= 0)
		return;
	kill_window_writers(sampler);
	kill_children(sampler, SUPERVISE_WORKER_NAME);
	if (late_ns <= AGENT_END_GRACE_NS)
		return;
	kill_children(sampler, SUPERVISE_WRITER_NAME); // which would go on alone
	kill(sampler, SIGKILL);
}
