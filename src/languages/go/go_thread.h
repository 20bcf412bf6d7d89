// SPDX-License-Identifier: MIT
// go_thread: reads the stacks of a thread that runs Go from what Go's runtime notes of them.
//
// The runtime runs its own functions, and C's, on a stack that each thread has (g0), not on the
// goroutine's. Where a stack was left is noted in its struct g; the thread's pointer g and its
// struct m lead there (runtime/runtime2.go). The fields of struct g that assembly and the linker
// know by their offsets have not moved since Go 1.5; the others (go_code.h) are found in the
// program's code. The target may write anything there, so it counts only if it fits together.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "go_code.h"

struct resident;

// As in runtime2.go, without the garbage collector's bit.
enum goroutine_status {
	GOROUTINE_IDLE = 0, // being made
	GOROUTINE_RUNNABLE = 1,
	GOROUTINE_RUNNING = 2,
	GOROUTINE_SYSCALL = 3,
	GOROUTINE_WAITING = 4,
	GOROUTINE_DEAD = 6,
	GOROUTINE_COPYSTACK = 8, // its stack is being moved
	GOROUTINE_PREEMPTED = 9,
	GOROUTINE_LEAKED = 10, // waiting, and nobody can wake it
	GOROUTINE_DEAD_EXTRA = 11,
};

// A struct g.
struct go_stack {
	uint64_t address;   // 0: there is none
	uint64_t low, high; // the stack's bounds
	uint64_t sp, pc;    // where it was left, or was left before that; 0: not known
};

struct go_thread {
	uint64_t g; // what it runs as: one of the two below, or that of its signal handlers
	uint64_t m; // 0: not known
	struct go_stack own;       // g0. The bounds are not exact in a program with C code
	struct go_stack goroutine; // m.curg
	uint64_t goid;             // the goroutine's id; 0: not known, or no goroutine
	uint32_t status;           // enum goroutine_status
	uint64_t labels;           // address of the program's labels for it; 0: none
};

// Reads what Go's runtime notes of a thread with the thread pointer `tls`, if that is in memory
// (resident.h). It is right if the thread stands still. False if the thread is not one of Go's, or
// what is noted does not fit together.
bool go_thread_read(int tid, struct resident *resident, uint64_t tls,
                    const struct go_layout *layout, struct go_thread *ret);

// True if the goroutine's stack is still where it was. Other threads may move it.
bool go_thread_is_valid(int tid, struct resident *resident, const struct go_thread *thread);

// True if a goroutine that has a thread is run by it. While it stops the world, helps the collector
// or moves to a larger stack, all on the thread's own stack, the runtime calls it waiting, or
// moving.
static inline bool goroutine_is_run(uint64_t status)
{
	return status == GOROUTINE_RUNNING || status == GOROUTINE_SYSCALL ||
	       status == GOROUTINE_WAITING || status == GOROUTINE_COPYSTACK;
}

// True if what the thread does is done for a goroutine that is known by its id.
static inline bool go_thread_runs_goroutine(const struct go_thread *thread)
{
	return thread->goroutine.address && thread->goid && goroutine_is_run(thread->status);
}

static inline bool go_stack_has(const struct go_stack *stack, uint64_t sp)
{
	return stack->address && sp >= stack->low && sp < stack->high;
}
