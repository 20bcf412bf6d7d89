// SPDX-License-Identifier: MIT
// sleeper: looks at a thread without stopping it.
//
// A thread that is asleep stands still by itself. The kernel counts how often each thread was
// scheduled (schedstat): if the count is the same before and after, the thread did not run in
// between, and what was copied is one consistent picture.
#pragma once

#include <stdbool.h>

#include "profile.h"
#include "sleep.h"

struct machine_load;

struct maps;
struct snapshot;
struct snapshot_buffer;
struct stop_picture;
struct target;
struct target_thread;

// Notes that the thread is stopped now, for SLEEPER_WAITS. Returns its figures.
struct proc_schedstat sleeper_note_stop(const struct target *target, struct target_thread *thread);

// Reads its figures; zeros: not known.
struct proc_schedstat sleeper_figures(const struct target *target,
                                      const struct target_thread *thread);

// Makes a picture of a copy: of its registers, and of its stack from SP up to `end`, or as much of
// that as a picture holds. ret->size is 0 if the stack is not there.
void sleeper_take_picture(const struct snapshot *snapshot, uint64_t end, struct stop_picture *ret);

// Finds what the thread does, for the next sleeper_look, and copies nothing. Where many threads are
// to be looked at, all are seen before the first is copied: while the profiler has a CPU, some wake
// and wait for it, who would be asleep without it.
void sleeper_see(const struct target *target, struct target_thread *thread);

// Looks at the thread, in the state in which sleeper_see found it, if that was called since the
// last look. Sets *ret_state for SLEEPER_COPIED, _HIDDEN, _BARE and _RUNS; keeps thread->last up to
// date.
enum sleeper_look sleeper_look(const struct target *target, struct target_thread *thread,
                               const struct maps *maps, struct snapshot_buffer *buffer,
                               struct snapshot *ret_snapshot, enum thread_state *ret_state);

// Finds the thread's state now. False if it has ended.
bool sleeper_state(const struct target *target, struct target_thread *thread,
                   enum thread_state *ret);

// True if the thread is blocked at this moment. Cheaper than sleeper_state; false also if that is
// not known.
bool sleeper_is_blocked(const struct target *target, struct target_thread *thread);

// True if the thread is about to end, and executes nothing of the program any more. False if it has
// ended, and if that is not known.
bool sleeper_exits(const struct target *target, struct target_thread *thread);

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

// Finds sleepers that were woken, and still wait for a CPU. Their stacks are those of their
// sleep, and their run counts do not tell; but they do not sleep.
enum { WOKEN_MAX_LOOKS = 256 }; // at a time

// True if a look at each sleeper is worth it; n_others is machine_load_others. So it is only if
// threads wait for CPUs, and there are at most WOKEN_MAX_LOOKS sleepers.
bool woken_is_worth_looks(const struct machine_load *load, const struct target *target,
                          long n_others);

// True if the sleeper is one; false if it was stopped, and is only on its way back to sleep.
bool woken_is_ready(const struct target *target, struct target_thread *thread);

// True if a sleeper (thread->look_later) may be one. n_running of the other threads were just seen
// to run or be ready; n_others is machine_load_others before that. If those are all of the
// machine's ready threads, no sleeper is one. As threads come and go meanwhile, it counts several
// times.
bool woken_may_be_ready(const struct machine_load *load, const struct target *target, long n_others,
                        long n_running);
