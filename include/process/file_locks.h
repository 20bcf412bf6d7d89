// SPDX-License-Identifier: MIT
// file_locks: finds who holds the locks of files, in the kernel's table (/proc/locks, proc(5)).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_lock_wait {
	int pid;        // the process whose thread waits
	uint64_t inode; // of the file; 0: not known
	bool is_flock;  // flock(2), else fcntl(2)
};

// Returns the table's text, to be freed; NULL: it cannot be read.
char *file_locks_read(void);

// Finds the processes that hold what the wait is for: up to `max` pids, as our namespace has them
// (0 or less: not known). Returns how many it found.
size_t file_locks_find(const char *table, const struct file_lock_wait *wait, int *ret_pids,
                       size_t max);

// True if only the process `pid` has the open file with which it holds a flock(2) lock on that
// inode: if not, another process could unlock it, too. Looks at all descriptors of all processes.
bool file_locks_is_sole(int pid, uint64_t inode);
