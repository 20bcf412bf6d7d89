// SPDX-License-Identifier: MIT
// sleeper: looks at a thread without stopping it.
//
// A thread that is asleep stands still by itself. The kernel counts how often each thread was
// scheduled (schedstat): if the count is the same before and after, the thread did not run in
// between, and what was copied is one consistent picture.
#pragma once

#include "profile.h"

struct maps;
struct snapshot;
struct snapshot_buffer;
struct target;
struct target_thread;

enum sleeper_look {
	SLEEPER_UNCHANGED, // asleep since its last sample: same stack, same state
	SLEEPER_WAITS,  // ready, but without a CPU, since it was stopped for its last sample: same
	                // stack
	SLEEPER_COPIED, // asleep now, in thread->call; *ret_snapshot holds it, with SP, PC and its
	                // call's arguments
	SLEEPER_HIDDEN, // asleep, but only a stop can show its stack
	SLEEPER_BARE,   // asleep, and has no stack of the program's: a worker of the kernel's
	                // (io_uring)
	SLEEPER_RUNS,   // runs, or moved while it was looked at: must be stopped
	SLEEPER_GONE,   // has ended
};

// Reads, before the thread is stopped, what sleeper_note_stop will read: then it is in the caches.
void sleeper_rehearse_stop(const struct target *target, const struct target_thread *thread);

// Notes that the thread is stopped now, for SLEEPER_WAITS.
void sleeper_note_stop(const struct target *target, struct target_thread *thread);

// Notes how the stop of a sleeping thread found its stack, of which unwinding came up to `end`.
void sleeper_keep_picture(struct target_thread *thread, const struct snapshot *snapshot,
                          uint64_t end);

// Looks at the thread. Sets *ret_state for SLEEPER_COPIED, _HIDDEN, _BARE and _RUNS; keeps
// thread->last up to date.
enum sleeper_look sleeper_look(const struct target *target, struct target_thread *thread,
                               const struct maps *maps, struct snapshot_buffer *buffer,
                               struct snapshot *ret_snapshot, enum thread_state *ret_state);

// Finds the thread's state now. False if it has ended.
bool sleeper_state(const struct target *target, struct target_thread *thread,
                   enum thread_state *ret);

// True if the thread is blocked at this moment. Cheaper than sleeper_state; false also if that is
// not known.
bool sleeper_is_blocked(const struct target *target, struct target_thread *thread);

// True if the thread runs. Cheaper than a look: nothing is copied.
bool sleeper_runs(const struct target *target, struct target_thread *thread);

// True if the copied thread can be stopped without harm to its system call (spared_calls.h).
bool sleeper_bears_stop(const struct target *target, const struct target_thread *thread);

// True if the thread, which was copied asleep, has run since. False also if that is not known.
bool sleeper_has_moved(const struct target *target, const struct target_thread *thread);

// Copies a sleeper's stack again, with a larger thread->hint.guess_bytes. False if this is not the
// sleep that was copied before.
bool sleeper_copy_again(const struct target *target, struct target_thread *thread,
                        const struct maps *maps, struct snapshot_buffer *buffer,
                        struct snapshot *ret_snapshot);
