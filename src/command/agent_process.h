// SPDX-License-Identifier: MIT
// agent_process: what the agent knows of a process, and whether it may be sampled.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cgroup.h"
#include "proc.h"

struct agent_process {
	int pid;
	uint64_t start_time; // with the pid, the process's identity; clock ticks since boot
	int64_t age_ns;
	int tracer_pid; // 0: none
	bool is_kernel;
	uid_t uid;
	char *user; // or the number, where it has no name
	char name[PROC_NAME_SIZE];
	char *exe;     // its program's path; "": it cannot be known
	char *command; // its words, spaces between them; "": not read
	struct cgroup cgroup;
};

// Reads what is cheap: the identity, the age, what it is; false: it has ended. The caller deinits.
bool agent_process_look(int pid, struct agent_process *ret);

// Reads the rest, which rules ask for, without waiting for the process or for a server that it
// uses.
void agent_process_read(struct agent_process *process);

// Reads its command line, which stands in its memory: that may take as long as it likes.
void agent_process_read_command(struct agent_process *process);
void agent_process_deinit(struct agent_process *process);

// True if it is this process, a descendant of it, or another profiler, whose holding of threads
// would last the longer.
bool agent_process_is_own(const struct agent_process *process);

// Why it cannot be sampled, in words of one line; NULL: it can be. The caller frees. Likewise.
char *agent_process_obstacle(const struct agent_process *process);
