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

// The first argument of all functions but `find` is what `find` returned.
struct runtime_kind {
	const char *name; // as in --runtimes=

	// Looks for the runtime in the process; NULL: it is not there. *ret_is_early: what tells
	// its version is not in memory yet; only `merge` and `destroy` are called of it then.
	// `setup` stays valid until `destroy`.
	void *(*find)(const struct runtimes_setup *setup, int tid, bool *ret_is_early);
	void (*destroy)(void *runtime);

	// Is called in each tick, before the threads are looked at.
	void (*update)(void *runtime, int tid, int64_t now_ns);

	// As runtimes_name_futex.
	char *(*name_futex)(void *runtime, int tid, uint64_t futex);

	// As runtimes_name_thread.
	char *(*name_thread)(void *runtime, int tid);

	// As runtimes_look_ahead. `note` and `room` are as for `read`; NULL: nothing is to be read.
	void (*look_ahead)(const void *runtime, int tid, void *note, size_t room);

	// Reads what is needed of the thread, which stands still, into `note`; returns how many of
	// its `room` bytes that took, SNAPSHOT_MAX_NOTE_BYTES at most, 0: nothing. The rest of them
	// it may use meanwhile. Async-signal-safe.
	size_t (*read)(const void *runtime, int tid, const struct snapshot *snapshot, void *note,
	               size_t room);

	// As runtimes_merge. Returns false only where an `update` will know more of the thread: it
	// is looked at again then, asleep or not. Where it put in frames, stack->sps is NULL, so
	// that no other runtime can merge into this stack.
	bool (*merge)(void *runtime, int tid, const struct snapshot *snapshot,
	              const struct snapshot_note *note, struct unwound *stack);
};
