// SPDX-License-Identifier: MIT
// python_pieces: the small pieces of memory that a thread's note is read from.
//
// Most of what one sample of a thread reads, the next one needs again: the thread's state, the data
// stack, frames in the heap, code objects. So what was asked for is kept as a plan of what to read
// next time, all at once and with few calls, since the thread is held meanwhile. What is asked for
// and is not among it is read by itself. A plan says only where to read: what it brings is looked
// at as if it had been read just then.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resident.h"

enum {
	PYTHON_PIECES_AT_ONCE = 32, // that are asked for together
	PYTHON_MAX_PIECES = 2048,   // that are kept for the next time
};

struct python_piece {
	uint64_t address, size;
};

// Sorted by address; none overlaps another.
struct python_plan {
	size_t n, capacity;
	struct python_piece items[];
};

struct python_pieces {
	struct resident *resident; // borrowed
	int tid;
	struct resident_block *planned; // those that could be read, by address
	size_t n_planned;
	size_t latest; // of them that something was found in: what is asked for next is often near
	struct python_piece *asked; // what was asked for, and read; NULL: not kept
	size_t n_asked;
};

// Asks which of what is planned is in memory (resident_look_ahead), and unless `scratch` is NULL
// reads it, as python_pieces_read_plan will: what that needs is in the caches then.
void python_pieces_look_ahead(struct resident *resident, int tid, const struct python_plan *plan,
                              uint8_t *scratch, size_t size);

// Reads what is planned, if that fits into `size` bytes of `scratch`. Returns how many bytes of
// that it uses. As the next four, async-signal-safe.
size_t python_pieces_read_plan(struct python_pieces *pieces, const struct python_plan *plan,
                               uint8_t *scratch, size_t size);

// Returns `size` bytes at the address, if they were planned and could be read; else NULL.
const uint8_t *python_pieces_find(struct python_pieces *pieces, uint64_t address, size_t size);

// Notes that these bytes are to be read next time.
void python_pieces_note(struct python_pieces *pieces, uint64_t address, size_t size);

// As resident_read_blocks, for up to PYTHON_PIECES_AT_ONCE of them, and as resident_read.
void python_pieces_read_blocks(struct python_pieces *pieces, struct resident_block *blocks,
                               size_t n);
bool python_pieces_read(struct python_pieces *pieces, uint64_t address, void *bytes, size_t size);

// Makes a plan of n pieces, which are changed by that: in the old plan if that has room, else in a
// new one, which free() destroys. `old` may be NULL.
struct python_plan *python_plan_make(struct python_plan *old, struct python_piece *pieces,
                                     size_t n);
