// SPDX-License-Identifier: MIT
// go_switch: finds where a walk goes on when it has come to the end of one of the stacks of a Go
// thread, from the copy alone.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct go_thread;
struct registers;
struct snapshot;

// The functions of Go's runtime that change the stack pointer. What they call runs on the stack
// that they change to; a leaf in them may be on either stack.
enum go_switch {
	GO_UNCLEAR,     // nothing is known of it
	GO_MCALL,       // to the thread's stack, for good: what it calls puts the goroutine aside
	GO_GOGO,        // to the goroutine's, for good
	GO_SYSTEMSTACK, // to the thread's
	GO_MORESTACK,   // to the thread's; its caller, whose stack was too small, begins again
	GO_ASMCGOCALL,  // to the thread's, for C code
	GO_SAME_STACK,  // asmcgocall, called on the thread's stack: aligns it
	GO_CGOCALLBACK, // C code calls Go's: to the goroutine's
	GO_SCHEDULE, // keeps the stack, but has the thread run another goroutine than the one that
	             // called it
	GO_SAVED_SP, // to the thread's, or aligns the stack; a register has the stack pointer
};

// How far the walk of one stack has come; zero at its start but for `go`.
struct go_walk {
	const struct go_thread *go; // what the copy holds
	bool has_switched;
	bool is_scheduled;
	uint64_t own_sp; // where C code last left the thread's stack, for the frames above
};

enum go_move {
	GO_UNKNOWN, // the runtime does not say, or not clearly; *registers are unchanged
	GO_FRAME,   // *registers are those of the same function where it was called
	GO_CALLER,  // *registers are those of its caller
	GO_LEFT,    // *registers are those with which the goroutine was left: of a caller, or of a
	            // function that it has not begun yet
	GO_ROOT,    // nobody waits below
};

// Walks over such a function. `registers` are its frame's; `is_call`: what it called is above.
// `slot`: with GO_ASMCGOCALL and GO_SAME_STACK, how far above the stack pointer it keeps the
// goroutine (0: not there), or the stack pointer; in a leaf, how much of the thread's stack it may
// have taken already. With GO_SAVED_SP, the register.
enum go_move go_switch_walk(const struct snapshot *snapshot, enum go_switch kind, uint8_t slot,
                            bool is_call, struct go_walk *walk, struct registers *registers);
