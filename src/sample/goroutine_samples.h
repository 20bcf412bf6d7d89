// SPDX-License-Identifier: MIT
// goroutine_samples: what a tick makes of a Go program's goroutines. Each is a subject of samples
// of its own (struct thread).
//
// One that a thread runs, or blocks in a system call for, is counted by that thread's sample, which
// is of the goroutine then, and not of the thread. The others are read while the program runs
// (goroutines.h), at the end of a tick. How often is a matter of how long it takes: what is parked
// and has not moved was parked all the while, so its time is right even if it was seldom looked at.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "go_program.h"
#include "goroutine_table.h"
#include "goroutines.h"

struct snapshot;
struct target_thread;
struct ticker;
struct unwound;

struct goroutine_samples {
	bool wanted;         // --runtimes
	bool shows_system;   // --system-goroutines
	bool no_creators;    // --no-creators
	bool numbers_differ; // the target numbers its threads otherwise: a pid namespace
	bool found;          // program is one whose goroutines can be read
	struct go_program program;
	uint32_t generation; // of the address space, when it was looked for
	bool knew_layout;    // that stacks show of Go, likewise
	uint64_t tries;      // so many ticks it was looked for in vain
	uint64_t try_tick;   // and when it is to be looked for again
	struct goroutine_list list;
	struct goroutine_table table;
	struct hash_index threads_index; // of the structures m that were asked for their threads
	uint64_t *threads;
	size_t n_threads, threads_capacity;
	uint32_t *active; // entries that were run, and were not seen parked since
	size_t n_active, active_capacity;
	uint32_t shown; // whose stack the thread showed that was asked about last, + 1; 0: its own
	size_t n_subjects;    // made in the profile
	uint64_t tick;        // ticks of the process until now
	uint64_t look;        // times that all were read
	int64_t looked_ns;    // the time up to which the last look stands; 0: there was none
	int64_t next_look_ns; // not before
	bool is_read;         // the stacks of all were, once
	bool is_cut;          // the look at hand leaves stacks to later ones
	int64_t until_ns;     // when it has used so much CPU; 0: never
};

void goroutine_samples_init(struct goroutine_samples *samples, bool wanted, bool shows_system,
                            bool no_creators);
void goroutine_samples_deinit(struct goroutine_samples *samples);

// Begins a tick; `is_idle`: nothing has happened since the last one.
void goroutine_samples_begin(struct ticker *ticker, bool is_idle);

// At the end of a tick: counts those that no thread runs, if it is time to. Before the first tick
// (accounting.h) they are read only.
void goroutine_samples_look(struct ticker *ticker);

// True if there are stacks that no look has read yet.
bool goroutine_samples_has_unread(const struct ticker *ticker);

// Call it before a thread is counted that was copied while it stood still, or slept (`snapshot`
// NULL). Decides whether the sample is the thread's or that of the goroutine that it runs. One
// goroutine gives one sample in a tick: if another thread has run it before, the sample is the
// thread's.
void goroutine_samples_bind(struct ticker *ticker, struct target_thread *thread,
                            const struct snapshot *snapshot);

// The labels of the samples of a thread that was asked about: a goroutine has its own.
void goroutine_samples_label(struct ticker *ticker, const struct target_thread *thread,
                             uint32_t labels);

// Makes the thread's samples its own from now on.
void goroutine_samples_unbind(struct ticker *ticker, struct target_thread *thread);

// The stack of the thread that was last bound; a goroutine's has its creator as root.
uint32_t goroutine_samples_stack(struct ticker *ticker, const struct unwound *unwound);

// Call it when stacks have shown all that they will of the program.
void goroutine_samples_note_layout(struct ticker *ticker);

// Counts all up to the last tick, because the profile is about to be read, or (is_end) the process
// has ended or is not sampled any more.
void goroutine_samples_settle(struct ticker *ticker, bool is_end);
