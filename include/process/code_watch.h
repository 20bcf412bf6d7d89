// SPDX-License-Identifier: MIT
// code_watch: tells whether the code that was seen is still mapped where it was.
//
// A dlclose and a dlopen of equal size at the same place leave no sign in the process's figures,
// and its maps are too long to be read at every tick. Since Linux 6.11 the kernel can be asked for
// a single mapping (PROCMAP_QUERY, Documentation/filesystems/proc.rst), in about a microsecond.
// While all code that was seen is watched, and none of it has moved, the maps themselves need not
// be read.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "maps.h"

enum { CODE_WATCH_MAX = 128 }; // mappings; only the first ones, if there are more

struct code_watch {
	struct mapping items[CODE_WATCH_MAX]; // their paths are not kept
	size_t count;
	int maps_fd;  // of the process, while it runs the same program; -1: none
	bool partial; // code was seen that is not watched
	bool changed; // a look has found a mapping changed
	bool unknown; // this kernel cannot be asked
};

void code_watch_init(struct code_watch *watch);
void code_watch_deinit(struct code_watch *watch);

// Watches a mapping of code from now on, if there is room. Looks at it if it is new, through thread
// `tid`: it may have changed since the maps were read. False if it has; that the program is gone is
// not a change.
bool code_watch_add(struct code_watch *watch, const struct mapping *mapping, int pid, int tid);

// Notes that code was seen whose mapping is not watched: it comes and goes too often.
void code_watch_leave_out(struct code_watch *watch);

// Begins anew, as when the process executes another program.
void code_watch_clear(struct code_watch *watch);

// Looks at all mappings. True if one has changed, or the program is gone.
bool code_watch_changed(struct code_watch *watch, int pid, int tid);

// Does the same. True if all code that was seen is still mapped where it was; false also if that is
// not known.
bool code_watch_is_valid(struct code_watch *watch, int pid, int tid);
