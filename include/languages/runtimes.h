// SPDX-License-Identifier: MIT
// runtimes: what the runtimes of languages know of a process's stacks, beside the machine's own.
//
// A process is searched for runtimes whenever its code changes, and after an exec; one without a
// runtime costs nothing more. When a thread is copied, and while it stands still, the runtime reads
// what it needs beside the stack: a note, kept with the snapshot. When the stack has been unwound,
// the runtime's frames take the place of those of its interpreter. A runtime trusts nothing that it
// reads, stops no thread, and makes up no name: if something does not fit, the machine's frames
// stay as they are, and it is counted in struct run_stats.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "language.h"

struct address_space;
struct profile;
struct resident;
struct run_language;
struct run_stats;
struct snapshot;
struct snapshot_buffer;
struct unwound;

// Which frames are shown in a stack with frames of a runtime (--frames=).
enum runtime_frames {
	RUNTIME_FRAMES_AUTO, // not those that only lead from one of its functions to the next
	RUNTIME_FRAMES_ALL,  // these, too
	RUNTIME_FRAMES_OWN,  // only the runtime's own
};

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
	void *early[LANGUAGES_MAX]; // those that could not be told yet; the others are the
	                            // address space's
	bool looked;
	// When they were last looked for:
	uint32_t generation;  // the address space's
	uint64_t files_hash;  // a hash of the mappings of files' beginnings
	uint64_t start_stack; // the address space's
	// When those that are early are looked for again; 0: there are none.
	int64_t again_ns;
	int64_t wait_ns; // from the last look until then
};

// Returns where a language counts what it reads.
struct run_language *runtimes_figures(const struct runtimes_setup *setup,
                                      const struct language *language);

// Parses the kinds of --runtimes=: "auto" (all), "none", or names with commas between them. False
// if there is no such kind.
bool runtimes_parse(const char *list, unsigned int *ret);

void runtimes_init(struct runtimes *runtimes, const struct runtimes_setup *setup);
void runtimes_deinit(struct runtimes *runtimes);

// Looks for runtimes if the process's code has changed; those that are found update what they know
// of its threads. Call it at each tick, with a live thread.
void runtimes_update(struct runtimes *runtimes, int tid, int64_t now_ns);

// Returns what the futex at that address of the process is to a runtime, such as "GIL held by ...",
// as a new string; NULL: nothing.
char *runtimes_name_futex(const struct runtimes *runtimes, int tid, uint64_t futex);

// Returns the name that the program gave the thread by its runtime, as a new string; NULL: none.
// The thread may be running.
char *runtimes_name_thread(const struct runtimes *runtimes, int tid);

// Does what it can of the next runtimes_read of the thread, which is about to be stopped, so that
// it is held for less. With `buffer`, that read's, it reads what that will read, to have it in the
// caches then; nothing of it is kept.
void runtimes_look_ahead(const struct runtimes *runtimes, int tid,
                         const struct snapshot_buffer *buffer);

// Takes the runtimes' notes for the snapshot of a thread that stands still. Async-signal-safe.
void runtimes_read(const struct runtimes *runtimes, int tid, struct snapshot_buffer *buffer,
                   struct snapshot *snapshot);

// Puts the runtimes' frames in their places in the stack, by the snapshot's notes. If it put in
// any, the runtime owns stack->locations until the next merge, and stack->sps is NULL. False if a
// runtime will know more of the thread after the next update, so that a sleeping thread should be
// looked at again then.
bool runtimes_merge(struct runtimes *runtimes, int tid, const struct snapshot *snapshot,
                    struct unwound *stack);
