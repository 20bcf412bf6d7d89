// SPDX-License-Identifier: MIT
// snapshot_hint: what walks over a thread's copies tell about where its next copy has to look.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "language.h"

struct other_stacks;
struct resident;
struct snapshot;

// What is known about a thread's stack.
struct snapshot_hint {
	uint64_t base;  // the outermost CFA seen in a whole stack; 0: none yet
	uint64_t depth; // the most bytes seen between SP and a base
	uint64_t tls;   // the thread pointer, above the stack in a thread of pthreads; 0: unknown
	size_t guess_bytes; // for a stack without a known end; 0: the default
	size_t limit_bytes; // for one with a known end; 0: the default
	uint64_t last_base;
	uint64_t deep_sp;  // where unwinding last reached its limit of frames; 0: never
	uint64_t outer_sp; // the lowest SP from which on a whole stack had few frames; 0: not known
	uint64_t outer_base;     // that stack's base
	uint64_t huge_bytes;     // a larger stack has far more frames than are shown; 0: not known
	size_t huge_limit_bytes; // for such a stack
	unsigned int n_huge;     // copies with that limit
	uint64_t stopped_sp;     // where the thread was last stopped; 0: never
	size_t stopped_bytes;    // what was copied there of the stack
	bool is_searched;        // copies are, in spite of deep_sp: unwinding once ended early
	bool misled;             // a base once belonged to another stack than the one copied
	unsigned int n_changes;  // of last_base: a thread with many stacks (coroutines) has no base
	                         // of its own
	struct resident *resident; // of the process; NULL: opened for each use; borrowed
	void *const *of_process;   // what languages keep of the process; NULL: nothing; borrowed
	void *of_thread[LANGUAGES_MAX]; // of the thread, each NULL: nothing; owned
	struct other_stacks *others;    // to which callers led; NULL: none; owned
	uint32_t n_grown;               // how often the copies were made larger
	uint32_t n_partial;             // walks in a row that were not whole
};

void snapshot_hint_deinit(struct snapshot_hint *hint);

// Notes the copy of a thread that was stopped.
void snapshot_hint_stopped(struct snapshot_hint *hint, const struct snapshot *snapshot);

// Makes the next copy larger: this one ended before its stack did. If it was to be small, as the
// stack seemed to have far more frames than are shown, the next one is not.
void snapshot_hint_grow(struct snapshot_hint *hint, const struct snapshot *snapshot);

// True if the stack is far larger than `walks` walks like the one that ended at that SP: if these
// reach the limit of frames that are shown, it has more.
bool snapshot_is_huge(const struct snapshot *snapshot, uint64_t sp, size_t walks);

// Makes the next copy end at that SP, where unwinding reached its limit of frames: nothing above it
// need be copied while the thread is held. If the stack is far deeper (snapshot_is_huge), fewer of
// its frames are kept, those up to `kept_sp`, and the next copies end there, but for some of the
// first, and one now and then, since the thread's stack may be another by then.
void snapshot_hint_deep(struct snapshot_hint *hint, const struct snapshot *snapshot, uint64_t sp,
                        uint64_t kept_sp);

// Notes that a whole stack was unwound, up to `base`, and had no more than a few frames from
// `outer_sp` on. However large these are, they do not make a stack deep.
void snapshot_hint_whole(struct snapshot_hint *hint, const struct snapshot *snapshot,
                         uint64_t outer_sp, uint64_t base);

// Notes that unwinding has ended early. If the copy was not searched for a signal's interrupted
// stack, as one of that thread had been deep, the thread's next ones are.
void snapshot_hint_ended(struct snapshot_hint *hint, const struct snapshot *snapshot);

// Notes the outermost CFA that unwinding the copy has reached.
void snapshot_hint_base(struct snapshot_hint *hint, const struct snapshot *snapshot, uint64_t base);

// True if the address, which the copy was cut before, is likely to be on a stack of which the copy
// has the beginning, so that it is to grow (snapshot_hint_grow). `missing` 0: it is not known.
bool snapshot_goes_on_at(const struct snapshot *snapshot, uint64_t missing);

// Notes that a walk over the copy is over. `missing`: an address that it could not read, on a stack
// that the copy does not hold; 0: none. That stack is copied as well from now on.
void snapshot_hint_others(struct snapshot_hint *hint, const struct snapshot *snapshot,
                          uint64_t missing, bool is_whole);

// True if the thread's next copy holds more than this one.
bool snapshot_hint_knows_more(const struct snapshot_hint *hint, const struct snapshot *snapshot);

// True if another look at the thread is worth it, right after one that has shown what to copy: not
// if many looks in a row have found no whole stack.
bool snapshot_hint_may_look_again(const struct snapshot_hint *hint);
