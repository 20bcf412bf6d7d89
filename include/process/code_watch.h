// SPDX-License-Identifier: MIT
// code_watch: does the code that was seen still stand where it did?
//
// A dlclose and a dlopen of equal size at the same place leave no sign in the process's figures,
// and its maps are too long to be read at every tick. Since Linux 6.11 one mapping can be asked for
// (PROCMAP_QUERY, Documentation/filesystems/proc.rst), in a microsecond or so.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "maps.h"

enum { CODE_WATCH_MAX = 64 }; // mappings; of more, the first ones

struct code_watch {
	struct mapping items[CODE_WATCH_MAX]; // their paths are not kept
	size_t count;
	size_t next;  // to be looked at
	int maps_fd;  // of the process, while it runs the same program; -1: none
	bool unknown; // this kernel cannot be asked
};

void code_watch_init(struct code_watch *watch);
void code_watch_deinit(struct code_watch *watch);

// Watches a mapping of code from now on, if it is a file's and there is room.
void code_watch_add(struct code_watch *watch, const struct mapping *mapping);

// Watches none any more.
void code_watch_clear(struct code_watch *watch);

// Looks at some of them, each in its turn, by way of thread `tid`. True: one is not what it was.
bool code_watch_changed(struct code_watch *watch, int pid, int tid);
