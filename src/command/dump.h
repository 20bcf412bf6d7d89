// SPDX-License-Identifier: MIT
// dump: what all threads do at one moment, as plain values: stacks, kinds, since when, what for.
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
	uint32_t sample; // likewise: its stack, state and wait
	enum wait_kind kind;
	int64_t blocked_ns; // that it has not run for; -1: it runs, or that is not known
	bool is_exact;      // else it is that or more
	bool unmoved;       // it has not run since the dump before
	uint64_t runs;      // the kernel's count of them; 0: it does not sleep, or it is not known
	char *name;         // clean text
	char *call;         // the system call in words; NULL: none is known
	bool has_args;
	uint64_t args[6]; // of the call
	char *holder;     // who holds what it waits for, in words; NULL: not known
};

struct dump {
	struct profile *profile; // borrowed, as the next two
	struct modules *modules;
	struct symbols *symbols;
	int pid;
	char *command;   // its words, clean text
	char *host;      // clean text
	int64_t time_ns; // CLOCK_REALTIME
	int64_t up_ns;   // since the process began; -1: not known
	struct dump_thread *threads;
	size_t n_threads, capacity;
	const struct dump_locks *locks; // who holds what; NULL: not known; borrowed
};

// A zeroed struct dump is an empty one.
void dump_deinit(struct dump *dump);

// The thread of the profile's sample; all but the call is set by what the profile says.
struct dump_thread *dump_add(struct dump *dump, uint32_t sample);

// Sets the kinds; the symbols must be there.
void dump_find_kinds(struct dump *dump);

// Sorts the threads as they are shown: those that run, those that wait for something particular,
// longest first, then the others likewise.
void dump_sort(struct dump *dump);

const struct thread *dump_thread_of(const struct dump *dump, const struct dump_thread *thread);

// One frame as it is shown.
struct dump_frame {
	char *name;         // a new string
	const char *file;   // the path of the source; "": not known; owned by the symbols
	const char *module; // the path; "": the kernel's; owned by the modules
	uint32_t line;      // 0: not known
	uint64_t offset;    // in the module
	uint64_t address;   // in the process; 0: not known
	bool is_inlined;
};

// Calls visit(context, frame) for each frame of the sample, leaf first.
void dump_frames(const struct dump *dump, uint32_t sample,
                 void (*visit)(void *context, const struct dump_frame *frame), void *context);
