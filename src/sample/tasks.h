// SPDX-License-Identifier: MIT
// tasks: samples what a language runs on threads (language_tasks.h), such as goroutines. Each task
// has samples of its own (struct thread), from its birth to its end.
//
// One that a thread runs, or blocks in a system call for, is counted by that thread's sample, which
// is then the task's and not the thread's. The others are parked: they are looked at, while the
// program runs, at the end of a tick. A look at all of them may take several ticks, each for a part
// of its period, so that threads are sampled in time however many tasks there are. How often one
// begins depends on what the last one has cost: a task that is parked and has not moved was parked
// all the while, so its time is right even if it was seldom looked at.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"
#include "language_tasks.h"
#include "profile.h"

struct account;
struct runtimes_setup;
struct target_thread;
struct ticker;
struct unwound;

enum { TASK_NONE = UINT32_MAX };

// A runtime's structure, and the task that lives in it.
struct task_entry {
	struct task seen; // as last read; its address is that of the structure
	uint32_t kind;
	uint32_t thread; // in the profile; TASK_NONE: it is not shown
	uint32_t sample; // its last sample's id in the profile, if it was sampled
	uint32_t stack;  // if has_stack, before the first sample: the stack in which it is parked
	uint32_t wait;
	enum thread_state state;
	uint64_t tick;  // the tick up to which it is counted
	uint64_t look;  // the look in which it was last listed
	int bound_tid;  // the thread that ran it last and has run no other since; 0: none
	bool is_active; // it was run, and was not seen parked since
	bool is_alive;
	bool is_sampled, has_stack;
	bool lacks_labels; // they could not be read with its stack
	bool is_kept;      // the stack is that of `seen`
};

// A look at all of them.
struct task_look {
	uint64_t number;
	bool is_begun, is_listed; // it is under way; all that are listed were looked at
	uint64_t first_tick;
	int64_t from_ns;        // one that is new is counted from then on
	int64_t began_ns;       // the time of its first tick
	int64_t cost_ns;        // CPU time
	size_t n_checked;       // entries that were checked for their end
	uint64_t alive, system; // as in run_tasks
};

struct tasks {
	const struct language_tasks *ops; // NULL: no language that is wanted has tasks
	void *runtime;                    // theirs
	bool shows_system;                // --system-goroutines
	bool no_creators;                 // --no-creators
	bool numbers_differ; // the target is in a pid namespace, with other numbers for its threads
	bool found;          // the process has tasks that can be read
	struct task_entry *entries;
	size_t n_entries, entries_capacity;
	struct task_kind *kinds;
	size_t n_kinds, kinds_capacity;
	struct hash_index entry_index, kind_index;
	struct hash_index threads_index; // of runners whose threads were looked for
	uint64_t *threads;
	size_t n_threads, threads_capacity;
	uint32_t *active; // entries that a thread ran, and that were not seen parked since
	size_t n_active, active_capacity;
	uint32_t shown;  // index + 1 of the one whose stack the last thread asked about showed; 0:
	                 // its own
	uint64_t n_owed; // ticks before this one for which the task of the thread that was last
	                 // bound was not seen
	size_t n_subjects; // made in the profile
	uint64_t tick;     // ticks of the process until now
	struct task_look look;
	bool is_read;         // a look has come to its end: all stacks have been read once
	int64_t looked_ns;    // when the last whole look began; 0: there was none
	int64_t next_look_ns; // the next look is not before
};

// Uses the first language of those kinds that has tasks. `setup` is borrowed.
void tasks_init(struct tasks *tasks, const struct runtimes_setup *setup, bool shows_system,
                bool no_creators);
void tasks_deinit(struct tasks *tasks);

// Begins a tick. `is_idle`: nothing has happened since the last one.
void tasks_begin(struct ticker *ticker, bool is_idle);

// Counts, at the end of a tick and if it is time to, those that no thread runs. Before the first
// tick (accounting.h) it only reads them.
void tasks_look(struct ticker *ticker);

// Does the same once more, if stacks have led to the language's code only since.
void tasks_look_again(struct ticker *ticker);

// True if a look is under way: the next tick has something to do even if nothing has happened.
bool tasks_is_looking(const struct ticker *ticker);

// Call it before a thread is counted that was copied while it stood still, or slept (`snapshot`
// NULL). Decides whether the sample is the thread's or the task's that it runs. A task gives one
// sample in a tick: if another thread has already run it, the sample is the thread's.
void tasks_bind(struct ticker *ticker, struct target_thread *thread,
                const struct snapshot *snapshot);

// Call it after the sample of the thread that was last bound was counted: that stands also for the
// ticks in which its task ran, but was not seen.
void tasks_pay(struct ticker *ticker, const struct account *account);

// Gives the labels to the samples of a thread that was asked about; a task has its own.
void tasks_label(struct ticker *ticker, const struct target_thread *thread, uint32_t labels);

// Makes the thread's samples its own from now on.
void tasks_unbind(struct ticker *ticker, struct target_thread *thread);

// Interns the stack of the thread that was last bound; a task's has its creator as root.
uint32_t tasks_stack(struct ticker *ticker, const struct unwound *unwound);

// Call it after each walk of a stack.
void tasks_note_walk(const struct ticker *ticker);

// Counts all up to the last tick, because the profile is about to be read, or (is_end) because the
// process has ended or is not sampled any more.
void tasks_settle(struct ticker *ticker, bool is_end);
