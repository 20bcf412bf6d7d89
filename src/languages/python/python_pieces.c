// SPDX-License-Identifier: MIT
#include "python_pieces.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum {
	// Pieces so near each other are read as one: that costs less than one more of them.
	MAX_GAP_BYTES = 512,
	MIN_PAGE_BYTES = 4096, // no machine has smaller ones
};

void python_pieces_look_ahead(struct resident *resident, int tid, const struct python_plan *plan,
                              uint8_t *scratch, size_t size)
{
	struct python_pieces rehearsed = {.resident = resident, .tid = tid};
	struct resident_block blocks[PYTHON_PIECES_AT_ONCE];
	size_t n = 0;

	for (size_t i = 0; plan && i < plan->n; i++) {
		blocks[n++] = (struct resident_block){.address = plan->items[i].address,
		                                      .size = plan->items[i].size};
		if (n == array_size(blocks) || i + 1 == plan->n) {
			resident_look_ahead(resident, tid, blocks, n);
			n = 0;
		}
	}
	if (scratch)
		python_pieces_read_plan(&rehearsed, plan, scratch, size);
}

size_t python_pieces_read_plan(struct python_pieces *pieces, const struct python_plan *plan,
                               uint8_t *scratch, size_t size)
{
	struct resident_block *blocks = (struct resident_block *)scratch;
	size_t used = plan ? plan->n * sizeof(*blocks) : 0, n = 0;

	if (!plan || plan->n > PYTHON_MAX_PIECES || used > size)
		return 0;
	for (size_t i = 0; i < plan->n; i++) {
		const struct python_piece *piece = &plan->items[i];
		if (piece->size > size - used)
			continue;
		blocks[n++] =
		    (struct resident_block){piece->address, scratch + used, piece->size, false};
		used += piece->size;
	}
	resident_read_blocks(pieces->resident, pieces->tid, blocks, n);
	pieces->planned = blocks;
	pieces->n_planned = pieces->latest = 0;
	for (size_t i = 0; i < n; i++)
		if (blocks[i].is_read)
			blocks[pieces->n_planned++] = blocks[i];
	return used;
}

static bool has_bytes(const struct resident_block *block, uint64_t address, size_t size)
{
	const uint64_t at = address - block->address;

	return at < block->size && block->size - at >= size;
}

// The block that has these bytes; NULL: there is none.
static const struct resident_block *find_block(struct python_pieces *pieces, uint64_t address,
                                               size_t size)
{
	size_t low = 0, high = pieces->n_planned;

	if (high > 0 && has_bytes(&pieces->planned[pieces->latest], address, size))
		return &pieces->planned[pieces->latest];
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (pieces->planned[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || !has_bytes(&pieces->planned[low - 1], address, size))
		return NULL;
	pieces->latest = low - 1;
	return &pieces->planned[low - 1];
}

const uint8_t *python_pieces_find(struct python_pieces *pieces, uint64_t address, size_t size)
{
	const struct resident_block *block = find_block(pieces, address, size);

	if (!block)
		return NULL;
	python_pieces_note(pieces, address, size);
	return (const uint8_t *)block->bytes + (address - block->address);
}

void python_pieces_note(struct python_pieces *pieces, uint64_t address, size_t size)
{
	if (pieces->asked && pieces->n_asked < PYTHON_MAX_PIECES)
		pieces->asked[pieces->n_asked++] = (struct python_piece){address, size};
}

// Reads those that were not planned, whose positions are in `which`.
static void read_missing(struct python_pieces *pieces, struct resident_block *blocks,
                         const size_t *which, size_t n)
{
	struct resident_block missing[PYTHON_PIECES_AT_ONCE];

	for (size_t i = 0; i < n; i++)
		missing[i] = blocks[which[i]];
	resident_read_blocks(pieces->resident, pieces->tid, missing, n);
	for (size_t i = 0; i < n; i++) {
		blocks[which[i]].is_read = missing[i].is_read;
		if (missing[i].is_read)
			python_pieces_note(pieces, missing[i].address, missing[i].size);
	}
}

void python_pieces_read_blocks(struct python_pieces *pieces, struct resident_block *blocks,
                               size_t n)
{
	size_t which[PYTHON_PIECES_AT_ONCE], n_missing = 0;

	for (size_t i = 0; i < n; i++) {
		const uint8_t *planned =
		    blocks[i].size ? python_pieces_find(pieces, blocks[i].address, blocks[i].size)
		                   : NULL;
		blocks[i].is_read = planned;
		if (planned)
			memcpy(blocks[i].bytes, planned, blocks[i].size);
		else if (blocks[i].size && n_missing < PYTHON_PIECES_AT_ONCE)
			which[n_missing++] = i;
	}
	if (n_missing > 0)
		read_missing(pieces, blocks, which, n_missing);
}

bool python_pieces_read(struct python_pieces *pieces, uint64_t address, void *bytes, size_t size)
{
	struct resident_block block = {address, bytes, size, false};

	python_pieces_read_blocks(pieces, &block, 1);
	return block.is_read;
}

static int compare(const void *a, const void *b)
{
	const struct python_piece *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

// True if reading both as one takes no page that neither needs.
static bool is_near(const struct python_piece *last, const struct python_piece *next)
{
	const uint64_t end = last->address + last->size;

	return next->address <= end ||
	       (next->address - end <= MAX_GAP_BYTES &&
	        next->address / MIN_PAGE_BYTES == (end - 1) / MIN_PAGE_BYTES);
}

struct python_plan *python_plan_make(struct python_plan *old, struct python_piece *pieces, size_t n)
{
	size_t n_kept = 0;

	if (n > 0)
		qsort(pieces, n, sizeof(*pieces), compare);
	for (size_t i = 0; i < n; i++) {
		struct python_piece *last = n_kept > 0 ? &pieces[n_kept - 1] : NULL;
		if (!last || !is_near(last, &pieces[i])) {
			pieces[n_kept++] = pieces[i];
			continue;
		}
		const uint64_t size = pieces[i].address + pieces[i].size - last->address;
		last->size = size > last->size ? size : last->size;
	}
	struct python_plan *plan = old;
	if (!plan || plan->capacity < n_kept) {
		plan = memory_alloc(sizeof(*plan) + n_kept * sizeof(plan->items[0]));
		plan->capacity = n_kept;
	}
	plan->n = n_kept;
	if (n_kept > 0)
		memcpy(plan->items, pieces, n_kept * sizeof(plan->items[0]));
	return plan;
}
