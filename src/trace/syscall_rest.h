// SPDX-License-Identifier: MIT
// syscall_rest: finds what is left of a call that a stop cut short, and how to execute it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "syscall_registers.h"

struct syscall_row;

enum syscall_mend {
	MEND_NOTHING, // it was not cut
	MEND_AGAIN,   // the kernel enters it again
	MEND_REST,    // the rest is to be executed, or the whole call without another stop
	MEND_LEFT,    // it cannot be mended
};

struct syscall_caller {
	int tid, pid; // pid: its process
	bool compat;  // it makes a 32-bit program's call (syscall_registers.h), which is not mended
};

enum syscall_rest_next {
	REST_ENDS,    // all is done, or what ended the call would have ended it alone
	REST_GOES_ON, // there is more to be done
};

enum syscall_rest_kind {
	REST_MORE,  // there is more to be moved
	REST_WAIT,  // its result stands, but it has not waited yet
	REST_WHOLE, // it begins again, and is not to be disturbed any more
};

struct syscall_rest {
	struct thread_registers original; // as the program would have found them
	const struct syscall_row *row;    // in the table
	struct syscall_caller caller;
	enum syscall_rest_kind kind;
	bool is_socket;
	bool is_unsure;         // what its descriptor is set to could not be asked
	bool peeks_on;          // it looks at what comes behind what it has looked at
	bool is_filtered;       // by seccomp
	bool is_left;           // it cannot be mended
	bool is_emptied;        // by syscall_rest_empty
	unsigned int n_entered; // how often a part was entered
	uint64_t total;         // the bytes, or what else it counts, that the call is to come to
	uint64_t done;          // how many of these are done
	uint64_t part;          // what the call that was entered last is to come to
	struct thread_registers entered; // the registers with which that call began
};

// Returns argument `number` of the program's own call, counted from 1; 0: 0.
uint64_t syscall_rest_argument(const struct syscall_rest *rest, unsigned int number);

// Judges a call that has returned a positive result, and whose row can be continued. MEND_REST:
// *ret describes the rest.
enum syscall_mend syscall_rest_find(const struct syscall_row *row,
                                    const struct syscall_caller *caller,
                                    const struct thread_registers *thread,
                                    struct syscall_rest *ret);

// Begins a call that is to be entered again as it was, and not to be stopped.
void syscall_rest_begin_whole(const struct syscall_row *row, const struct syscall_caller *caller,
                              const struct thread_registers *thread, struct syscall_rest *ret);

// Makes the registers with which the thread executes the next part of the rest as a call of its
// own: all of it, or one buffer of a list of buffers. False if they are not known, or there have
// been too many parts: it is left, and counted, but for one that the kernel begins again.
bool syscall_rest_enter(struct syscall_rest *rest, struct thread_registers *ret);

// For a thread that stands at the entry of a part that the program's seccomp filter may refuse, as
// the program would not have made that call: looks whether there is such a filter by now, which
// another thread may have installed (SECCOMP_FILTER_FLAG_TSYNC). If so, makes registers with which
// it makes the program's own call, with nothing to be moved, and returns true.
bool syscall_rest_empty(struct syscall_rest *rest, struct thread_registers *ret);

// Notes that the call that was entered has returned `result`.
enum syscall_rest_next syscall_rest_next(struct syscall_rest *rest, int64_t result);

// True if that result raised a SIGPIPE that the program would not have got without us.
bool syscall_rest_has_signalled(const struct syscall_rest *rest, int64_t result);

// True if the thread was interrupted in the call that was entered last, or just before it. If so,
// counts what the call has moved.
bool syscall_rest_is_inside(struct syscall_rest *rest, const struct thread_registers *thread);

// Tells by /proc, without a stop: false if the thread has ended, or is blocked elsewhere than in
// the call that was entered last.
bool syscall_rest_may_be_inside(const struct syscall_rest *rest);

// Sets the thread's registers to what they are after all parts, as if one call had done them.
void syscall_rest_leave(const struct syscall_rest *rest, struct thread_registers *thread);

// True if the thread is under seccomp, by a filter or in strict mode: calls other than those that
// the program makes may kill it.
bool syscall_is_filtered(int tid);
