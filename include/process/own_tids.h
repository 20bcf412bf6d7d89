// SPDX-License-Identifier: MIT
// own_tids: the threads of a process by the numbers that it has for them itself, in its own pid
// namespace.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct own_tid {
	int own, ours;
};

struct own_tids {
	int pid;
	bool is_elsewhere;     // in another namespace than we
	struct own_tid *items; // sorted by `own`
	size_t count;
};

void own_tids_init(struct own_tids *tids, int pid);
void own_tids_deinit(struct own_tids *tids);

// Returns our tid of the thread; 0: the process has none such.
int own_tids_find(const struct own_tids *tids, int own);
