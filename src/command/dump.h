// SPDX-License-Identifier: MIT
// dump: what all threads do at one moment, as plain values: their stacks, what they wait for and
// since when.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "module.h"
#include "profile.h"
#include "symbolize.h"
#include "wait_kind.h"

struct dump_locks;

struct dump_thread {
	uint32_t thread; // in the profile, which has its name, pid and tid
	uint32_t sample; // in the profile, too: its stack, state and wait
	enum wait_kind kind;
	bool is_idle;       // it has no work (wait_kind.h)
	int64_t blocked_ns; // how long it has not run; -1: it runs, or that is not known
	bool is_exact;      // blocked_ns is exact; else it is the least that is known
	bool unmoved;       // it has not run since the previous dump
	uint64_t runs; // how often it was scheduled; 0: it does not sleep, or that is not known
	char *name;    // clean text
	char *call;    // the system call as text; NULL: not known
	bool has_args;
	uint64_t args[6]; // of the call
	char *holder;     // who holds what it waits for, as text; NULL: not known
};

struct dump {
	struct profile *profile; // borrowed, as the next two
	struct modules *modules;
	struct symbols *symbols;
	int pid;
	char *command;   // the command line, clean text
	char *host;      // clean text
	int64_t time_ns; // CLOCK_REALTIME
	int64_t up_ns;   // since the process began; -1: not known
	struct dump_thread *threads;
	size_t n_threads, capacity;
	const struct dump_locks *locks; // who holds what; NULL: not known; borrowed
};

// Frees what the dump owns. A zeroed struct dump is empty.
void dump_deinit(struct dump *dump);

// Adds the thread of the profile's sample. Sets all of it but the call by what the profile says.
struct dump_thread *dump_add(struct dump *dump, uint32_t sample);

// Sets each thread's kind and is_idle, for which dump->symbols must be set.
void dump_find_kinds(struct dump *dump);

// True if it has waited for longer than that for something that it needs to go on: who waits for
// work may do so for ever. The kinds must have been found.
bool dump_is_blocked(const struct dump_thread *thread, int64_t ns);

// Sorts the threads as they are shown: first those that run, then those that wait for something
// particular, then the others; in each group by how long they have waited, longest first.
void dump_sort(struct dump *dump);

// Returns the thread in the dump's profile.
const struct thread *dump_thread_of(const struct dump *dump, const struct dump_thread *thread);

// One frame as it is shown.
struct dump_frame {
	char *name;         // valid until `visit` returns, as all of this
	const char *file;   // the source's path; "": not known; owned by the symbols
	const char *module; // the module's path; "": the kernel; owned by the modules
	uint32_t line;      // 0: not known
	uint64_t offset;    // in the module
	uint64_t address;   // in the process; 0: not known
	bool is_inlined;
	bool is_own; // of the program's own code (own_code.h)
};

// Calls visit(context, frame) for each frame of the sample, leaf first.
void dump_frames(const struct dump *dump, uint32_t sample,
                 void (*visit)(void *context, const struct dump_frame *frame), void *context);
