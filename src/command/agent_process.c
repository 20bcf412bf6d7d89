// SPDX-License-Identifier: MIT
#include "agent_process.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "diagnose.h"
#include "error.h"
#include "memory.h"
#include "process_list.h"
#include "text.h"
#include "untrusted_text.h"

enum {
	PF_KTHREAD = 0x00200000, // the kernel's linux/sched.h
	MAX_ANCESTORS = 64,
};

static int64_t age_of(uint64_t start_time)
{
	const int64_t tick_ns = NS_PER_SECOND / sysconf(_SC_CLK_TCK);

	return clock_read_ns(CLOCK_BOOTTIME) - (int64_t)start_time * tick_ns;
}

bool agent_process_look(int pid, struct agent_process *ret)
{
	struct proc_stat stat;

	if (!proc_read_stat(-1, pid, pid, &stat))
		return false;
	const bool has_ended = stat.state == 'Z' || stat.state == 'X'; // its main thread at least
	const int tid = has_ended ? process_living_thread(pid) : pid;
	if (!tid)
		return false;
	*ret = (struct agent_process){
	    .pid = pid,
	    .tid = tid,
	    .start_time = stat.start_time,
	    .age_ns = age_of(stat.start_time),
	    .is_kernel = (stat.flags & PF_KTHREAD) != 0,
	};
	return true;
}

static char *read_exe(int pid)
{
	char path[PATH_MAX];

	return proc_read_exe(pid, path, sizeof(path)) ? text_clean(path, strlen(path), sizeof(path))
	                                              : memory_strdup("");
}

void agent_process_read(struct agent_process *process)
{
	struct proc_status status = {0};
	const int pid = process->pid;

	proc_read_status(process->tid, &status);
	process->tracer_pid = status.tracer_pid;
	process->uid = status.euid;
	if (proc_read_name(pid, pid, process->name)) {
		_cleanup_free_ char *name =
		    text_clean(process->name, strlen(process->name), PROC_NAME_SIZE - 1);
		snprintf(process->name, sizeof(process->name), "%s", name);
	}
	process->exe = read_exe(process->tid);
	cgroup_read(process->tid, &process->cgroup);
}

const char *agent_process_command(struct agent_process *process)
{
	if (!process->command && !process->is_silent)
		process->command = untrusted_command(process->tid);
	process->is_silent |= !process->command;
	return process->command;
}

const char *agent_process_user(struct agent_process *process)
{
	if (!process->user && !process->is_silent)
		process->user = untrusted_user(process->uid);
	process->is_silent |= !process->user;
	return process->user;
}

void agent_process_deinit(struct agent_process *process)
{
	free(process->user);
	free(process->exe);
	free(process->command);
	cgroup_deinit(&process->cgroup);
	*process = (struct agent_process){0};
}

// By the program's path: the file itself may lie on a server that does not answer.
static bool is_profiler(const struct agent_process *process)
{
	_cleanup_free_ char *ours = read_exe(getpid());

	return ours[0] && strcmp(ours, process->exe) == 0;
}

bool agent_process_is_own(const struct agent_process *process)
{
	struct proc_status status;
	int pid = process->pid;

	if (pid == getpid() || is_profiler(process))
		return true;
	for (int i = 0; i < MAX_ANCESTORS && pid > 1 && proc_read_status(pid, &status); i++) {
		pid = status.ppid;
		if (pid == getpid())
			return true;
	}
	return false;
}

char *agent_process_obstacle(const struct agent_process *process)
{
	const int tracer = process->tracer_pid ? diagnose_tracer(process->pid) : 0;
	char name[PROC_NAME_SIZE] = "?";
	int pid;

	if (tracer) {
		proc_read_name(tracer, tracer, name);
		_cleanup_free_ char *clean = text_clean(name, strlen(name), PROC_NAME_SIZE);
		return memory_printf("it is traced by process %d (%s)", tracer, clean);
	}
	struct error *error = diagnose_target(process->pid, &pid);
	char *text = error ? memory_strdup(error_message(error)) : NULL;
	error_destroy(error);
	return text;
}
