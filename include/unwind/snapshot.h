// SPDX-License-Identifier: MIT
// snapshot: a copy of a thread's registers and stack; unwinding needs nothing else of the thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "arch.h"
#include "language.h"
#include "other_stacks.h"
#include "resident.h"
#include "snapshot_hint.h"

struct arch;
struct snapshot;
struct snapshot_buffer;
struct snapshot_hint;

struct maps;

enum {
	SNAPSHOT_BUFFER_BYTES = 256 << 20, // reserved; memory is taken as stacks need it
	SNAPSHOT_MAX_STACKS = 4,           // that belong together by signals, or a language
	SNAPSHOT_MAX_REGIONS = SNAPSHOT_MAX_STACKS + OTHER_STACKS_MAX,
	SNAPSHOT_MAX_NOTE_BYTES = 2 << 20,
	SNAPSHOT_MAX_STACK_BYTES = 16 << 20,      // of one stack; what lies above is not copied
	SNAPSHOT_KNOWN_STACK_BYTES = 1 << 20,     // first limit if its extent is known
	SNAPSHOT_UNKNOWN_STACK_BYTES = 256 << 10, // first limit if its extent is not known
};

struct snapshot_region {
	uint64_t start; // address in the target
	size_t size;
	const uint8_t *bytes;      // in the snapshot_buffer
	struct resident_gaps gaps; // pages that were not in memory
	size_t other;              // which of the hint's other stacks it is, from 1 on; 0: none
};

// What a language read of the thread when it was copied (language.h), in a form of its own.
struct snapshot_note {
	const uint8_t *bytes; // in the snapshot_buffer
	size_t size;          // 0: nothing
};

struct snapshot {
	struct registers registers;
	struct snapshot_region regions[SNAPSHOT_MAX_REGIONS];
	size_t n_regions;
	uint64_t tls;         // the thread pointer, as the hint had it; 0: unknown
	bool cut;             // some region is known to end before its stack does
	uint64_t stack_bytes; // from SP to the end of its stack; 0: not known
	uint64_t deep_bytes;  // of these, the part that may hold many frames
	bool is_huge;         // that is so much that only a little of it was copied
	bool is_unsearched;   // for what a signal interrupted: it seemed to be no signal stack
	struct other_stacks *others; // the hint's, to note which are read; NULL: none; borrowed
	uint32_t n_learned;          // theirs, at the copy
	uint32_t n_grown;            // the hint's, likewise
	bool is_parked;              // it is of a task that no thread runs
	struct snapshot_note notes[LANGUAGES_MAX]; // one for each language, by position
};

// Holds the bytes of a tick's snapshots: reserves much address space, of which only the part that
// is written takes memory.
struct snapshot_buffer {
	uint8_t *bytes;
	size_t size, used;
	size_t n_wanted; // snapshots that are still to be unwound
};

// False if no address space is left for it.
bool snapshot_buffer_init(struct snapshot_buffer *buffer);
void snapshot_buffer_deinit(struct snapshot_buffer *buffer);

// Drops all snapshots, unless some are still to be unwound, and gives back memory if they took
// much.
void snapshot_buffer_reset(struct snapshot_buffer *buffer);

// How much of the buffer was taken at some moment.
struct snapshot_mark {
	size_t used, n_wanted;
};

struct snapshot_mark snapshot_buffer_mark(const struct snapshot_buffer *buffer);

// Frees what was taken since the mark, unless somebody else has taken some, too.
void snapshot_buffer_take_back(struct snapshot_buffer *buffer, const struct snapshot_mark *mark);

// True if there is room for a snapshot of the largest size.
bool snapshot_buffer_has_room(const struct snapshot_buffer *buffer);

// Returns where a note of up to SNAPSHOT_MAX_NOTE_BYTES can be written, and how much room is there:
// what is not the note's is free for other use while it is made, and always ends at the same place.
// NULL: the buffer is full.
uint8_t *snapshot_buffer_begin_note(const struct snapshot_buffer *buffer, size_t *ret_room);

// Notes that this many bytes were written there: they are the snapshot's i-th note.
void snapshot_buffer_end_note(struct snapshot_buffer *buffer, size_t size, size_t i,
                              struct snapshot *snapshot);

// Copies the stack of a thread that stands still, from the red zone below registers->value[sp] on,
// with process_vm_readv(2) on thread `tid`, into the buffer. Copies only what is in memory, so that
// the thread is not held while a page is fetched (resident.h). If a signal handler runs on an
// alternate stack (sigaltstack(2)), copies the interrupted stack as well; for a thread of Go, also
// the one that it will go back to; and the hint's other stacks. False if nothing could be read
// (errno).
bool snapshot_capture(int tid, const struct arch *arch, const struct registers *registers,
                      const struct maps *maps, const struct snapshot_hint *hint,
                      struct snapshot_buffer *buffer, struct snapshot *ret);

// Copies, before the thread is stopped, from where it was last stopped, and drops it: what the copy
// needs is in the caches then. Worth it for a copy that is large, or made seldom.
void snapshot_rehearse(int tid, const struct arch *arch, const struct maps *maps,
                       const struct snapshot_hint *hint, struct snapshot_buffer *buffer);

// Returns the number of the region that holds the address; n_regions: none does.
size_t snapshot_find_region(const struct snapshot *snapshot, uint64_t address);

// Reads `size` (1, 2, 4 or 8) bytes at an address in the target from the copy. False if it does not
// hold them. The first argument is a struct snapshot (expression_read_fn).
bool snapshot_read(const void *snapshot, uint64_t address, unsigned int size, uint64_t *ret);

// True if the address lies in a copied stack, on a page that was not in memory.
bool snapshot_has_gap_at(const struct snapshot *snapshot, uint64_t address);

// True if the address was left out only because no more than a limit is copied of a stack.
bool snapshot_is_cut_before(const struct snapshot *snapshot, uint64_t address);

// Reads a word as snapshot_read does. Nearly everything that unwinding reads is a word of the first
// region, so only this is inline: the loop over regions and gaps made a frame a fifth more
// expensive.
static inline bool snapshot_read_word(const struct snapshot *snapshot, uint64_t address,
                                      uint64_t *ret)
{
	const struct snapshot_region *region = &snapshot->regions[0];
	const uint64_t at = address - region->start;

	if (snapshot->n_regions == 0 || region->gaps.count > 0 || at >= region->size ||
	    region->size - at < sizeof(*ret))
		return snapshot_read(snapshot, address, sizeof(*ret), ret);
	memcpy(ret, region->bytes + at, sizeof(*ret));
	return true;
}

// A copy of a thread's stack that is being made, to which languages add what their
// steps need. All of it is async-signal-safe.
enum { SNAPSHOT_COPY_MAX_KNOWN = 4 };

// Where a language's stack is.
struct known_stack {
	uint64_t low, high;
	bool is_exact; // it ends there, and not a little further up
};

struct snapshot_copy {
	int tid;
	const struct arch *arch;
	const struct maps *maps;
	const struct snapshot_hint *hint;
	struct snapshot_buffer *buffer;
	struct snapshot *snapshot; // with what was copied before
	size_t language;           // that is asked, by position
	bool has_many_bases;       // other threads of the process begin in other ways
	size_t n_known;
	struct known_stack known[SNAPSHOT_COPY_MAX_KNOWN];
};

// Returns how many more stacks can be copied.
size_t snapshot_copy_room(const struct snapshot_copy *copy);

// True if the copy has the address already.
bool snapshot_copy_has(const struct snapshot_copy *copy, uint64_t address);

// Makes these bytes the language's note. It has none if there is no room.
void snapshot_copy_note(const struct snapshot_copy *copy, const void *bytes, size_t size);

// Adds a stack that is known. More than SNAPSHOT_COPY_MAX_KNOWN are left out.
void snapshot_copy_know(struct snapshot_copy *copy, const struct known_stack *stack);

// Copies a stack from its stack pointer on, as far as it seems to reach.
bool snapshot_copy_stack(const struct snapshot_copy *copy, uint64_t sp);

// Copies `size` bytes from there on. False if there is no room, or none of them can be read.
bool snapshot_copy_bytes(const struct snapshot_copy *copy, uint64_t start, size_t size);
