// SPDX-License-Identifier: MIT
#include "agent_memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "memory.h"
#include "process_list.h"
#include "snapshot.h"

enum { MAX_ROLLUP_BYTES = 4096 };

// Its share of the pages that it has, in bytes; 0: not told.
static uint64_t read_pss(int pid)
{
	char path[64], text[MAX_ROLLUP_BYTES];
	unsigned long long kib = 0;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	const size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[n] = '\0';
	const char *line = strstr(text, "\nPss:");
	// cppcheck-suppress resourceLeak ; closed by _cleanup_fclose_
	return line && sscanf(line, "\nPss: %llu", &kib) == 1 ? kib << 10 : 0;
}

uint64_t agent_memory_of(int pid)
{
	size_t n;
	_cleanup_free_ int *pids = process_tree(pid, &n);
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += read_pss(pids[i]);
	return bytes;
}

// What this process has already counts, as the kernel counts it (proc(5), statm: data), and what is
// only reserved.
void agent_memory_limit(uint64_t bytes)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long pages;
	struct rlimit limit;

	if (!file || fscanf(file, "%*u %*u %*u %*u %*u %llu", &pages) != 1 ||
	    getrlimit(RLIMIT_DATA, &limit) != 0)
		return;
	const rlim_t most = pages * (rlim_t)sysconf(_SC_PAGESIZE) + SNAPSHOT_BUFFER_BYTES + bytes;
	if (limit.rlim_cur > most) // RLIM_INFINITY is the largest
		limit.rlim_cur = most;
	setrlimit(RLIMIT_DATA, &limit);
}
