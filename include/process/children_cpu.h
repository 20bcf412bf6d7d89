// SPDX-License-Identifier: MIT
// children_cpu: reads how much CPU time a process's children have used, and their children.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct children_cpu {
	size_t n;       // descendants that are there
	int64_t cpu_ns; // theirs, and that of those which ended and were waited for
};

// False if it is not known: the process is gone, or has thousands of threads or descendants.
bool children_cpu_read(int pid, struct children_cpu *ret);
