// SPDX-License-Identifier: MIT
// runtime_kind: what each kind of runtime does, in a folder of its own.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct runtimes_setup;
struct snapshot;
struct snapshot_note;
struct unwound;

// The first argument of all but `find` is what that returned.
struct runtime_kind {
	const char *name; // as in --runtimes=

	// Looks for it in the process; NULL: it is not there. `setup` stays valid until `destroy`.
	void *(*find)(const struct runtimes_setup *setup, int tid);
	void (*destroy)(void *runtime);

	// Before the threads are looked at, in each tick.
	void (*update)(void *runtime, int tid, int64_t now_ns);

	// As runtimes_name_futex.
	char *(*name_futex)(void *runtime, int tid, uint64_t futex);

	// As runtimes_name_thread.
	char *(*name_thread)(void *runtime, int tid);

	// Reads what is needed of the thread, which stands still, into `note`; returns how many of
	// its `room` bytes that took, 0: nothing. Async-signal-safe.
	size_t (*read)(const void *runtime, int tid, const struct snapshot *snapshot, void *note,
	               size_t room);

	// As runtimes_merge. True: frames were put in, and stack->sps is NULL: no other runtime can
	// merge into this stack.
	bool (*merge)(void *runtime, int tid, const struct snapshot *snapshot,
	              const struct snapshot_note *note, struct unwound *stack);
};
