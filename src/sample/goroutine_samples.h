// SPDX-License-Identifier: MIT
// goroutine_samples: samples the goroutines of a Go program in a tick. Each goroutine has samples
// of its own (struct thread).
//
// One that a thread runs, or blocks in a system call for, is counted by that thread's sample, which
// is then the goroutine's and not the thread's. The others are read while the program runs
// (goroutine_look.h), at the end of a tick.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "go_program.h"
#include "goroutine_copies.h"
#include "goroutine_table.h"
#include "goroutines.h"

struct account;
struct snapshot;
struct target_thread;
struct ticker;
struct unwound;

struct goroutine_samples {
	bool wanted;         // --runtimes
	bool shows_system;   // --system-goroutines
	bool no_creators;    // --no-creators
	bool numbers_differ; // the target is in a pid namespace, with other numbers for its threads
	bool found;          // program is one whose goroutines can be read
	struct go_program program;
	uint32_t generation; // the address space's generation when Go was looked for
	uint64_t n_rules;    // how many unwinding rules there were at the last tick
	size_t n_files;      // how many files with Go's code stacks had shown by then
	uint64_t tries;      // how many ticks have looked for it in vain
	uint64_t try_tick;   // when to look for it again
	struct goroutine_list list;
	struct goroutine_table table;
	struct hash_index threads_index; // of structs m whose threads were looked for
	uint64_t *threads;
	size_t n_threads, threads_capacity;
	uint32_t *active; // entries that a thread ran, and that were not seen parked since
	size_t n_active, active_capacity;
	uint32_t shown;  // index + 1 of the one whose stack the last thread asked about showed; 0:
	                 // its own
	uint64_t n_owed; // ticks before this one for which the goroutine of the thread that was
	                 // last bound was not seen
	size_t n_subjects;              // made in the profile
	uint64_t tick;                  // ticks of the process until now
	struct goroutine_copies copies; // of many
	struct goroutine_copies copy;   // of one
	struct goroutine_look {         // at all of them, which may take several ticks
		uint64_t number;
		bool is_begun, is_listed; // it is under way; all that are listed were looked at
		uint64_t first_tick;
		int64_t from_ns;        // one that is new is counted from then on
		int64_t began_ns;       // the time of its first tick
		int64_t cost_ns;        // CPU time
		size_t n_checked;       // entries that were checked for their end
		uint64_t alive, system; // as in run_goroutines
	} look;
	bool is_read;         // a look has come to its end: all stacks have been read once
	int64_t looked_ns;    // when the last whole look began; 0: there was none
	int64_t next_look_ns; // the next look is not before
};

void goroutine_samples_init(struct goroutine_samples *samples, bool wanted, bool shows_system,
                            bool no_creators);
void goroutine_samples_deinit(struct goroutine_samples *samples);

// Begins a tick. `is_idle`: nothing has happened since the last one.
void goroutine_samples_begin(struct ticker *ticker, bool is_idle);

// Counts, at the end of a tick and if it is time to, those that no thread runs. Before the first
// tick (accounting.h) it only reads them.
void goroutine_samples_look(struct ticker *ticker);

// Does the same once more, if stacks have led to Go's code only since.
void goroutine_samples_look_again(struct ticker *ticker);

// True if a look is under way: the next tick has something to do even if nothing has happened.
bool goroutine_samples_is_looking(const struct ticker *ticker);

// Finds the thread of a struct m that was not seen before.
void goroutine_samples_note_thread(struct ticker *ticker, uint64_t m);

// Returns the thread of a struct m; NULL: it is not known.
const struct target_thread *goroutine_samples_find_thread(struct ticker *ticker, uint64_t m);

// Has each tick look at one of which no stack is known yet, until it is seen parked or gone: it may
// be gone by the next look, and what it did until then would not be known.
void goroutine_samples_attend(struct goroutine_samples *samples, struct goroutine_entry *entry);

// Call it before a thread is counted that was copied while it stood still, or slept (`snapshot`
// NULL). Decides whether the sample is the thread's or the goroutine's that it runs. A goroutine
// gives one sample in a tick: if another thread has already run it, the sample is the thread's.
void goroutine_samples_bind(struct ticker *ticker, struct target_thread *thread,
                            const struct snapshot *snapshot);

// Call it after the sample of the thread that was last bound was counted: that stands also for the
// ticks in which its goroutine ran, but was not seen.
void goroutine_samples_pay(struct ticker *ticker, const struct account *account);

// Gives the labels to the samples of a thread that was asked about; a goroutine has its own.
void goroutine_samples_label(struct ticker *ticker, const struct target_thread *thread,
                             uint32_t labels);

// Makes the thread's samples its own from now on.
void goroutine_samples_unbind(struct ticker *ticker, struct target_thread *thread);

// Interns the stack of the thread that was last bound; a goroutine's has its creator as root.
uint32_t goroutine_samples_stack(struct ticker *ticker, const struct unwound *unwound);

// Takes over, for the next copies, what is known by now of where Go keeps things.
void goroutine_samples_note_layout(struct ticker *ticker);

// Counts all up to the last tick, because the profile is about to be read, or (is_end) because the
// process has ended or is not sampled any more.
void goroutine_samples_settle(struct ticker *ticker, bool is_end);
