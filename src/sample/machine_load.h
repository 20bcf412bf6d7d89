// SPDX-License-Identifier: MIT
// machine_load: counts the threads of the machine that run or wait for a CPU at this moment.
#pragma once

#include <stdbool.h>

struct machine_load {
	int fd; // /proc/loadavg; -1: none
	long n_cpus;
};

void machine_load_init(struct machine_load *load);
void machine_load_deinit(struct machine_load *load);

// Returns how many threads run or are ready to, without the caller (the fourth field of
// /proc/loadavg, runnable/all: proc(5)); -1: not known.
long machine_load_others(const struct machine_load *load);

// Does the same, and tells the pid that was last given out, to a process or a thread (the fifth
// field); -1: not known.
long machine_load_read(const struct machine_load *load, long *ret_last_pid);

// True if this many others want more CPUs than there are.
bool machine_load_is_crowded(const struct machine_load *load, long n_others);
