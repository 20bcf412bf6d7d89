// SPDX-License-Identifier: MIT
// load: how many threads of the machine run or wait for a CPU at this moment.
#pragma once

#include <stdbool.h>

struct load {
	int fd; // /proc/loadavg; -1: none
	long n_cpus;
};

void load_init(struct load *load);
void load_deinit(struct load *load);

// Threads that run or are ready to, the caller not counted (the fourth field of /proc/loadavg,
// runnable/all: proc(5)); -1: not known.
long load_others(const struct load *load);

// True if so many others want more CPUs than there are.
bool load_is_crowded(const struct load *load, long n_others);
