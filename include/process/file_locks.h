// SPDX-License-Identifier: MIT
// file_locks: who holds the locks of files, by the kernel's table (/proc/locks, proc(5)).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_lock_wait {
	int pid;        // the process whose thread waits
	uint64_t inode; // of the file; 0: not known
	bool is_flock;  // flock(2), else fcntl(2)
};

// The table's text, to be freed; NULL: it cannot be read.
char *file_locks_read(void);

// The processes that hold what the wait is for: up to `max` pids, as our namespace has them (0 or
// less: it does not tell), and how many.
size_t file_locks_find(const char *table, const struct file_lock_wait *wait, int *ret_pids,
                       size_t max);

// True if only the process `pid` has the open file by which it holds a lock of flock(2) on that
// inode: else another one could unlock it, too. Looks at all descriptors of all processes.
bool file_locks_is_sole(int pid, uint64_t inode);
