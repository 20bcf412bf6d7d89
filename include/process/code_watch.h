// SPDX-License-Identifier: MIT
// code_watch: tells whether the code that was seen is still mapped where it was.
//
// A dlclose and a dlopen of equal size at the same place leave no sign in the process's figures,
// and its maps are too long to be read at every tick. Since Linux 6.11 the kernel can be asked for
// a single mapping (PROCMAP_QUERY, Documentation/filesystems/proc.rst), in about a microsecond.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "maps.h"

enum { CODE_WATCH_MAX = 64 }; // mappings; only the first ones, if there are more

struct code_watch {
	struct mapping items[CODE_WATCH_MAX]; // their paths are not kept
	size_t count;
	size_t next;  // the next one to be looked at
	int maps_fd;  // of the process, while it runs the same program; -1: none
	bool unknown; // this kernel cannot be asked
};

void code_watch_init(struct code_watch *watch);
void code_watch_deinit(struct code_watch *watch);

// Watches a mapping of code from now on, if it is a file's and there is room.
void code_watch_add(struct code_watch *watch, const struct mapping *mapping);

// Stops watching.
void code_watch_clear(struct code_watch *watch);

// Looks at the next few mappings, through thread `tid`. True if one has changed.
bool code_watch_changed(struct code_watch *watch, int pid, int tid);
