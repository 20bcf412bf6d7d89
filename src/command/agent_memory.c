// SPDX-License-Identifier: MIT
#include "agent_memory.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory.h"
#include "proc.h"
#include "process_list.h"

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

// A pid that is another's by now has another parent: what the descriptor stands for cannot change
// any more.
static void kill_child_of(const int *parents, size_t n_parents, int pid)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct proc_status status;

	if (fd < 0 || !proc_read_status(pid, &status))
		return;
	for (size_t i = 0; i < n_parents; i++)
		if (parents[i] == status.ppid) {
			syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
			return;
		}
}

void agent_memory_free(int pid)
{
	size_t n;
	_cleanup_free_ int *pids = process_tree(pid, &n);

	for (size_t i = n; i-- > 1;) // children before their parents
		kill_child_of(pids, i, pids[i]);
}
