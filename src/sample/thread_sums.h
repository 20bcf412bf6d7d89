// SPDX-License-Identifier: MIT
// thread_sums: reads how often all threads of a process together were given a CPU, in one call.
//
// The kernel's taskstats adds up for a process what /proc/PID/task/TID/schedstat shows of each of
// its threads (Documentation/accounting/taskstats.rst; kernel/taskstats.c, fill_stats_for_tgid), in
// 2 us for 10 threads and 20 us for 1,000. A thread counts as soon as it is switched in, so the
// same sum twice means that none has run in between. Only processes with CAP_NET_ADMIN in the first
// network namespace may use it.
//
// The kernel adds up under the lock of the process's signals, with interrupts off, as it does for
// readers of /proc/PID/stat: do not ask often for a process with many threads.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proc.h"

struct thread_sums {
	int fd; // a netlink socket; -1: not available
	uint16_t family;
};

// Finds out whether the kernel answers.
void thread_sums_init(struct thread_sums *sums);
void thread_sums_deinit(struct thread_sums *sums);

static inline bool thread_sums_are_known(const struct thread_sums *sums)
{
	return sums->fd >= 0;
}

// Reads, for process `pid`, runs and delay_ns, including those of some threads that have ended;
// cpu_ns is 0. False if they are not known, as when the process has ended.
bool thread_sums_read(const struct thread_sums *sums, int pid, struct proc_schedstat *ret);
