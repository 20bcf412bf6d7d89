// SPDX-License-Identifier: MIT
// cpu_limit: reads how often a process's control groups, its own and those around it, had used up
// their limits of CPU time (a container's quota), from the cpu.stat of version 1 or 2.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct mounts;

enum { CPU_LIMIT_MAX_GROUPS = 16 };

// The kernel's counts of one group.
struct cpu_throttling {
	uint64_t n_periods, n_throttled; // in which the group had something to run; was throttled
	int64_t throttled_ns;            // for how long, added up over CPUs
};

struct cpu_limit_group {
	char *directory;
	int fd; // of its cpu.stat
	struct cpu_throttling first;
};

struct cpu_limit {
	struct cpu_limit_group groups[CPU_LIMIT_MAX_GROUPS]; // the innermost first
	size_t n_groups;
};

// Begins with a process: none of its groups may be found.
void cpu_limit_open(int pid, struct cpu_limit *ret);

// Does the same with the text of /proc/PID/cgroup and the mounts that the profiler sees.
void cpu_limit_open_with(const char *cgroups, const struct mounts *mounts, struct cpu_limit *ret);
void cpu_limit_close(struct cpu_limit *limit);

// Reads what the counts have become since the beginning, for the group that was throttled longest,
// and its limit in thousandths of a CPU (0: it has none).
void cpu_limit_read(const struct cpu_limit *limit, struct cpu_throttling *ret, uint32_t *ret_limit);
