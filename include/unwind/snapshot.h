// SPDX-License-Identifier: MIT
// snapshot: a copy of a thread's registers and stack; unwinding needs nothing else of the thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "arch.h"
#include "beam.h"
#include "go_thread.h"
#include "luajit.h"
#include "resident.h"

struct maps;

enum {
	SNAPSHOT_BUFFER_BYTES = 256 << 20, // reserved; memory is taken as stacks need it
	SNAPSHOT_MAX_REGIONS = 4,
	SNAPSHOT_MAX_NOTES = 2,
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
};

// What a runtime read of the thread when it was copied (runtimes.h), in a form of its own.
struct snapshot_note {
	const uint8_t *bytes; // in the snapshot_buffer
	size_t size;          // 0: nothing
};

struct snapshot {
	struct registers registers;
	struct snapshot_region regions[SNAPSHOT_MAX_REGIONS];
	size_t n_regions;
	uint64_t tls;             // the thread pointer, as the hint had it; 0: unknown
	bool cut;                 // some region is known to end before its stack does
	uint64_t stack_bytes;     // from SP to the end of its stack; 0: not known
	uint64_t deep_bytes;      // of these, the part that may hold many frames
	bool is_huge;             // that is so much that only a little of it was copied
	bool is_unsearched;       // for what a signal interrupted: it seemed to be no signal stack
	uint64_t elsewhere;       // another place from which a stack was to be copied; 0: none
	bool is_parked;           // it is of a goroutine that no thread runs
	bool asked_go;            // the copy was to hold what Go's runtime notes of the thread
	struct go_thread go;      // which is this
	uint64_t luajit_dispatch; // of the VM that was asked; 0: none
	uint64_t luajit_frame;    // where its innermost frame is; 0: not known
	struct snapshot_note notes[SNAPSHOT_MAX_NOTES]; // one for each runtime
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

// What is known about a thread's stack.
struct snapshot_hint {
	uint64_t base;  // the outermost CFA seen in a whole stack; 0: none yet
	uint64_t depth; // the most bytes seen between SP and a base
	uint64_t tls;   // the thread pointer, above the stack in a thread of pthreads; 0: unknown
	size_t guess_bytes; // for a stack without a known end; 0: the default
	size_t limit_bytes; // for one with a known end; 0: the default
	uint64_t last_base;
	uint64_t deep_sp;  // where unwinding last reached its limit of frames; 0: never
	uint64_t outer_sp; // the lowest SP from which on a whole stack had few frames; 0: not known
	uint64_t outer_base;     // that stack's base
	uint64_t huge_bytes;     // a larger stack has far more frames than are shown; 0: not known
	size_t huge_limit_bytes; // for such a stack
	unsigned int n_huge;     // copies with that limit
	uint64_t stopped_sp;     // where the thread was last stopped; 0: never
	size_t stopped_bytes;    // what was copied there of the stack
	bool is_searched;        // copies are, in spite of deep_sp: unwinding once ended early
	bool misled;             // a base once belonged to another stack than the one copied
	unsigned int n_changes;  // of last_base: a thread with many stacks (coroutines) has no base
	                         // of its own
	const struct go_layout *go; // of the program; NULL: none; borrowed
	struct resident *resident;  // of the process; NULL: opened for each use; borrowed
	struct luajit_thread luajit;
	struct beam_thread beam;
	uint64_t elsewhere; // an address on another stack, to which callers led; 0: none
};

// Copies the stack of a thread that stands still, from the red zone below registers->value[sp] on,
// with process_vm_readv(2) on thread `tid`, into the buffer. Copies only what is in memory, so that
// the thread is not held while a page is fetched (resident.h). If a signal handler runs on an
// alternate stack (sigaltstack(2)), copies the interrupted stack as well; for a thread of Go, also
// the one that it will go back to. False if nothing could be read (errno).
bool snapshot_capture(int tid, const struct arch *arch, const struct registers *registers,
                      const struct maps *maps, const struct snapshot_hint *hint,
                      struct snapshot_buffer *buffer, struct snapshot *ret);

// Notes the copy of a thread that was stopped.
void snapshot_hint_stopped(struct snapshot_hint *hint, const struct snapshot *snapshot);

// Copies, before the thread is stopped, from where it was last stopped, and drops it: what the copy
// needs is in the caches then. Worth it for a copy that is large, or made seldom.
void snapshot_rehearse(int tid, const struct arch *arch, const struct maps *maps,
                       const struct snapshot_hint *hint, struct snapshot_buffer *buffer);

// Makes the next copy larger: this one ended before its stack did. If it was to be small, as the
// stack seemed to have far more frames than are shown, the next one is not.
void snapshot_hint_grow(struct snapshot_hint *hint, const struct snapshot *snapshot);

// True if the stack is far larger than `walks` walks like the one that ended at that SP: if these
// reach the limit of frames that are shown, it has more.
bool snapshot_is_huge(const struct snapshot *snapshot, uint64_t sp, size_t walks);

// Makes the next copy end at that SP, where unwinding reached its limit of frames: nothing above it
// need be copied while the thread is held. If the stack is far deeper (snapshot_is_huge), fewer of
// its frames are kept, those up to `kept_sp`, and the next copies end there, but for some of the
// first, and one now and then, since the thread's stack may be another by then.
void snapshot_hint_deep(struct snapshot_hint *hint, const struct snapshot *snapshot, uint64_t sp,
                        uint64_t kept_sp);

// Notes that a whole stack was unwound, up to `base`, and had no more than a few frames from
// `outer_sp` on. However large these are, they do not make a stack deep.
void snapshot_hint_whole(struct snapshot_hint *hint, const struct snapshot *snapshot,
                         uint64_t outer_sp, uint64_t base);

// Notes that unwinding has ended early. If the copy was not searched for a signal's interrupted
// stack, as one of that thread had been deep, the thread's next ones are.
void snapshot_hint_ended(struct snapshot_hint *hint, const struct snapshot *snapshot);

// Notes the outermost CFA that unwinding the copy has reached.
void snapshot_hint_base(struct snapshot_hint *hint, const struct snapshot *snapshot, uint64_t base);

// Notes that unwinding reached that address, on a stack that the copy does not hold: that stack is
// copied as well from now on (SBCL's main thread calls Lisp on a stack of its own).
void snapshot_hint_elsewhere(struct snapshot_hint *hint, const struct snapshot *snapshot,
                             uint64_t address);

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
