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
	int tid; // a thread that lives: the process itself, unless its main thread has ended
	uint64_t start_time; // in clock ticks since boot; identifies the process, with the pid
	int64_t age_ns;
	int tracer_pid;            // 0: none
	bool is_kernel, is_silent; // silent: it has not told in time
	uid_t uid;
	char *user; // the user's name; the number if there is no name; NULL: not read yet
	char name[PROC_NAME_SIZE];
	char *exe;     // the program's path; "": cannot be read
	char *command; // the command line, joined by spaces; NULL: not read yet
	struct cgroup cgroup;
};

// Reads what is cheap: identity, age, tracer, whether it is the kernel's. False if the process has
// ended. The caller deinits.
bool agent_process_look(int pid, struct agent_process *ret);

// Reads the rest that rules ask for, but for the command line and the user. Never waits for the
// process or for a server that it uses.
void agent_process_read(struct agent_process *process);

// Returns what may not be told within a second (untrusted_text.h), and reads it if that was not
// done yet. NULL: it was not told, and the process is silent from then on.
const char *agent_process_command(struct agent_process *process);
const char *agent_process_user(struct agent_process *process);
void agent_process_deinit(struct agent_process *process);

// True for this process, its descendants, and other profilers: sampling one of these would lengthen
// the time for which it holds its own target's threads.
bool agent_process_is_own(const struct agent_process *process);

// Returns one line that tells why the process cannot be sampled, which the caller frees; NULL if it
// can be.
char *agent_process_obstacle(const struct agent_process *process);
