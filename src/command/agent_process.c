// SPDX-License-Identifier: MIT
#include "agent_process.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "diagnose.h"
#include "error.h"
#include "memory.h"
#include "text.h"

enum {
	PF_KTHREAD = 0x00200000, // the kernel's linux/sched.h
	MAX_COMMAND_BYTES = 4096,
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

	if (!proc_read_stat(-1, pid, pid, &stat) || stat.state == 'Z' || stat.state == 'X')
		return false;
	*ret = (struct agent_process){
	    .pid = pid,
	    .start_time = stat.start_time,
	    .age_ns = age_of(stat.start_time),
	    .is_kernel = (stat.flags & PF_KTHREAD) != 0,
	};
	return true;
}

static char *user_of(uid_t uid)
{
	const struct passwd *user = getpwuid(uid);

	return user ? memory_strdup(user->pw_name) : memory_printf("%u", uid);
}

static char *read_exe(int pid)
{
	char link[64], path[PATH_MAX];

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	const ssize_t n = readlink(link, path, sizeof(path));
	return n > 0 ? text_clean(path, (size_t)n, sizeof(path)) : memory_strdup("");
}

static char *read_command(int pid)
{
	size_t size = 0;
	_cleanup_free_ char *text = proc_read_whole(pid, "cmdline", MAX_COMMAND_BYTES, &size);

	while (size > 0 && text[size - 1] == '\0')
		size--;
	for (size_t i = 0; i < size; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	return text ? text_clean(text, size, MAX_COMMAND_BYTES) : memory_strdup("");
}

void agent_process_read(struct agent_process *process)
{
	struct proc_status status = {0};
	const int pid = process->pid;

	proc_read_status(pid, &status);
	process->tracer_pid = status.tracer_pid;
	process->uid = status.euid;
	process->user = user_of(status.euid);
	if (proc_read_name(pid, pid, process->name)) {
		_cleanup_free_ char *name =
		    text_clean(process->name, strlen(process->name), PROC_NAME_SIZE - 1);
		snprintf(process->name, sizeof(process->name), "%s", name);
	}
	process->exe = read_exe(pid);
	process->command = memory_strdup("");
	cgroup_read(pid, &process->cgroup);
}

void agent_process_read_command(struct agent_process *process)
{
	free(process->command);
	process->command = read_command(process->pid);
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
