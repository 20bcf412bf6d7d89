// SPDX-License-Identifier: MIT
// runtimes: what the runtimes of languages know of a process's stacks, beside the machine's own.
//
// A runtime is recognized in a process when its code changes, and again after an exec; a process
// without one costs nothing more. Of each thread that is copied the runtime reads, while the thread
// stands still, what it needs beside the stack: a note, kept with the snapshot. When the stack has
// been unwound, the runtime's frames take the place of those of its interpreter. It believes
// nothing that it reads, stops no thread, and makes no name up: what does not fit leaves the
// machine's frames as they are, and is counted in struct run_stats.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct address_space;
struct profile;
struct resident;
struct run_stats;
struct snapshot;
struct snapshot_buffer;
struct unwound;

enum { RUNTIMES_MAX = 2 }; // kinds

// Which frames are shown where a runtime has some (--frames=).
enum runtime_frames {
	RUNTIME_FRAMES_AUTO, // without what only leads from one of its functions to the next
	RUNTIME_FRAMES_ALL,  // with that
	RUNTIME_FRAMES_OWN,  // the runtime's own alone
};

// Go's bit in `kinds`. Its unit is not the thread but the goroutine (goroutines.h), which the
// sampler counts itself: nothing of what follows is about it.
#define RUNTIMES_GO (1u << 31)

// What the runtimes of one process work with; all borrowed.
struct runtimes_setup {
	unsigned int kinds; // bits, as from runtimes_parse
	enum runtime_frames frames;
	uint32_t max_frames;
	struct address_space *space;
	struct resident *resident;
	struct profile *profile;
	struct run_stats *stats;
};

// The runtimes of one process.
struct runtimes {
	struct runtimes_setup setup;
	void *found[RUNTIMES_MAX]; // each kind's own; NULL: not there
	bool looked;
	uint32_t generation;  // of the address space, when they were looked for
	uint64_t files_hash;  // of what was mapped of files' beginnings, likewise
	uint64_t start_stack; // likewise
};

// The kinds of --runtimes=: "auto" (all), "none", or names with commas between them. False: there
// is no such kind.
bool runtimes_parse(const char *list, unsigned int *ret);

void runtimes_init(struct runtimes *runtimes, const struct runtimes_setup *setup);
void runtimes_deinit(struct runtimes *runtimes);

// Looks for runtimes if the process's code has changed; those that are there bring what they know
// of its threads up to date. To be called at each tick, with a live thread.
void runtimes_update(struct runtimes *runtimes, int tid, int64_t now_ns);

// What the futex at that address of the process is to a runtime, such as "GIL held by ..."; a new
// string. NULL: nothing.
char *runtimes_name_futex(const struct runtimes *runtimes, int tid, uint64_t futex);

// What the program calls the thread, by a runtime, whether it runs or not; a new string. NULL:
// nothing.
char *runtimes_name_thread(const struct runtimes *runtimes, int tid);

// The thread stands still and has been copied: takes the notes for the snapshot. Async-signal-safe.
void runtimes_read(const struct runtimes *runtimes, int tid, struct snapshot_buffer *buffer,
                   struct snapshot *snapshot);

// Puts the runtimes' frames in their places in the stack, by the snapshot's notes. If some were
// put in, stack->locations belongs to the runtime until the next merge, and stack->sps is NULL.
// False: a runtime knows less of the thread than it will after the next update: a sleeping one is
// worth another look then.
bool runtimes_merge(struct runtimes *runtimes, int tid, const struct snapshot *snapshot,
                    struct unwound *stack);
