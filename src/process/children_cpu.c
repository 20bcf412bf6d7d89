// SPDX-License-Identifier: MIT
#include "children_cpu.h"

#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"
#include "proc.h"
#include "process_list.h"

enum { MAX_THREADS = 2000, MAX_PROCESSES = 2000, STAT_BYTES = 4096 };

static bool read_process(int pid, struct proc_stat *ret)
{
	size_t size;
	_cleanup_free_ char *text = proc_read_whole(pid, "stat", STAT_BYTES, &size);

	return text && proc_parse_stat(text, ret);
}

bool children_cpu_read(int pid, struct children_cpu *ret)
{
	const long ticks_per_second = sysconf(_SC_CLK_TCK);
	struct proc_stat stat;
	uint64_t sum;
	size_t n;

	free(process_threads(pid, &n));
	if (n > MAX_THREADS || ticks_per_second <= 0 || !read_process(pid, &stat))
		return false;
	sum = stat.children_cpu_ticks;
	_cleanup_free_ int *pids = process_tree(pid, &n);
	if (n > MAX_PROCESSES)
		return false;
	*ret = (struct children_cpu){0};
	for (size_t i = 1; i < n; i++) {
		if (!read_process(pids[i], &stat))
			continue; // it has just ended
		ret->n++;
		sum += stat.cpu_ticks + stat.children_cpu_ticks;
	}
	ret->cpu_ns = (int64_t)(sum * (uint64_t)(NS_PER_SECOND / ticks_per_second));
	return true;
}
