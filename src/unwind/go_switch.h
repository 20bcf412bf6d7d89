// SPDX-License-Identifier: MIT
// go_switch: where a walk goes on that has come to the end of one of the stacks of a Go thread, by
// what the copy holds alone.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct registers;
struct snapshot;

// The functions of Go's runtime that change the stack pointer. What they call is on the stack that
// they change to; a leaf in them may be on either.
enum go_switch {
	GO_UNCLEAR,     // nothing is known of it
	GO_MCALL,       // to the thread's stack, for good
	GO_GOGO,        // to the goroutine's, for good
	GO_SYSTEMSTACK, // to the thread's
	GO_MORESTACK,   // likewise; its caller, whose stack was too small, begins anew
	GO_ASMCGOCALL,  // likewise, for C code
	GO_SAME_STACK,  // asmcgocall, called on the thread's stack: aligns it
	GO_CGOCALLBACK, // C code calls Go's: to the goroutine's
	GO_SCHEDULE,    // does not, but has the thread run another goroutine than called it
	GO_SAVED_SP,    // to the thread's, or aligns the stack; a register has the stack pointer
};

// How far the walk of one stack has come; zeroed at its start.
struct go_walk {
	bool has_switched;
	bool is_scheduled;
	uint64_t own_sp; // where C code left the thread's stack last, for those who are above
};

enum go_move {
	GO_UNKNOWN, // the runtime does not say, or not clearly; *registers are as they were
	GO_FRAME,   // *registers are those of the same function where it was called
	GO_CALLER,  // *registers are those of its caller
	GO_ROOT,    // nobody waits below
};

// `registers`: of the frame in such a function; `is_call`: what it called is above. `slot`:
// GO_ASMCGOCALL, GO_SAME_STACK: how far above the stack pointer it keeps the goroutine (0: not
// there), or the stack pointer; in a leaf, how much of the thread's stack it may have taken
// already. GO_SAVED_SP: the register.
enum go_move go_switch_walk(const struct snapshot *snapshot, enum go_switch kind, uint8_t slot,
                            bool is_call, struct go_walk *walk, struct registers *registers);
