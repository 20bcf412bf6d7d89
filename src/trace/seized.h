// SPDX-License-Identifier: MIT
// seized: the threads that are seized now. There is one list for all, because the handler of
// SIGCHLD needs it; others change it only while that signal is blocked.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "syscall_rest.h"

// The rest of a call that a stop cut short (syscall_mend.h), executed under our control.
enum call_state {
	CALL_NONE,
	CALL_AWAITED,   // asked, but without a CPU as sampling ends: it may turn out cut short
	CALL_CUT_SHORT, // found to be so, and not resumed yet
	CALL_ENTERING,  // resumed, to stop at the rest's entry
	CALL_INSIDE,    // in the rest; it stops at the rest's end
	CALL_SIGNALLED, // the rest's end has raised a SIGPIPE, to be taken back at its next stop
	CALL_LEAVING,   // to be let go at its next stop, or reaped
};

struct seized {
	int tid, tgid;
	enum call_state call;
	struct syscall_rest rest;
	bool stands;   // in a stop that was reported, and not resumed since
	bool reported; // `status` has come, but nobody has asked for it yet
	int status;    // as waitpid gives it
};

// Makes room for one more, so that seized_add does not move the others while the handler looks at
// them.
void seized_reserve(void);

// Adds a thread to the end, for which there is room.
struct seized *seized_add(int tid, int tgid);

// Takes the thread off the list, if it is there; the last one takes its place.
void seized_forget(int tid);

// NULL if the thread is not seized.
struct seized *seized_find(int tid);

size_t seized_count(void);
struct seized *seized_at(size_t i);
