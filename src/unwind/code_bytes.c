// SPDX-License-Identifier: MIT
#include "code_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "hash.h"
#include "maps.h"
#include "memory.h"
#include "resident.h"

enum {
	BLOCK_BYTES = 512, // less than a page, of which most is not asked for: copying takes time
	N_BLOCKS = 256,    // a power of two
};

struct code_block {
	uint64_t address;
	int64_t read_ns;  // the update of the address space (updated_ns) at which; 0: never
	int64_t asked_ns; // likewise: the last one at which it was asked for
	size_t size;      // as much of it as could be read
	bool is_absent;   // it is not in memory: nobody has written it lately
	uint8_t bytes[BLOCK_BYTES];
};

struct code_blocks {
	int64_t now_ns;                     // the address space's last update
	struct code_block blocks[N_BLOCKS]; // each block in one of two, by its address's hash
};

static bool is_noted(const struct code_bytes *places, uint64_t address)
{
	for (size_t i = 0; i < places->n; i++)
		if (address - places->ranges[i].address < places->ranges[i].size)
			return true;
	return false;
}

void code_notes_add(struct code_notes *notes, uint64_t address, const void *bytes, size_t size)
{
	struct code_bytes *places = &notes->places;
	const size_t n = places->n;

	if (size > CODE_BYTES_MAX - notes->size || is_noted(places, address))
		return;
	if (n > 0 && places->ranges[n - 1].address + places->ranges[n - 1].size == address) {
		places->ranges[n - 1].size += size;
	} else if (n < CODE_BYTES_RANGES) {
		places->ranges[n].address = address;
		places->ranges[places->n++].size = size;
	} else {
		return;
	}
	memcpy(notes->bytes + notes->size, bytes, size);
	notes->size += size;
}

struct code_bytes code_notes_finish(const struct code_notes *notes)
{
	struct code_bytes bytes = notes->places;

	bytes.hash = hash_bytes(notes->bytes, notes->size);
	return bytes;
}

struct code_blocks *code_blocks_create(void)
{
	return memory_alloc_zeroed(1, sizeof(struct code_blocks));
}

void code_blocks_destroy(struct code_blocks *blocks)
{
	free(blocks);
}

static struct code_block *block_of(struct code_blocks *blocks, uint64_t address)
{
	const size_t at = hash_mix(address / BLOCK_BYTES, 0) & (N_BLOCKS - 1);
	struct code_block *one = &blocks->blocks[at], *other = &blocks->blocks[at ^ 1];

	if (one->address == address || other->address == address)
		return one->address == address ? one : other;
	return one->asked_ns <= other->asked_ns ? one : other;
}

static bool is_readable_code(const struct address_space *space, uint64_t block)
{
	const struct mapping *mapping = maps_find(&space->maps, block);

	return mapping && mapping->executable && mapping->readable;
}

static void note_read(struct code_block *block, const struct address_space *space, bool is_read)
{
	block->read_ns = space->updated_ns;
	block->size = is_read ? BLOCK_BYTES : 0;
	block->is_absent = !is_read;
}

// Reads in one go all blocks that were asked for at the last tick: most are asked for again, and a
// system call takes longer than a block. What is not in memory is not fetched.
static void read_ahead(struct code_blocks *blocks, const struct address_space *space)
{
	struct resident_block there[N_BLOCKS];
	struct code_block *asked[N_BLOCKS];
	size_t n = 0;

	for (size_t i = 0; i < N_BLOCKS && space->resident; i++) {
		struct code_block *block = &blocks->blocks[i];
		if (!block->read_ns || block->asked_ns != blocks->now_ns ||
		    !is_readable_code(space, block->address))
			continue;
		there[n] =
		    (struct resident_block){block->address, block->bytes, BLOCK_BYTES, false};
		asked[n++] = block;
	}
	if (n > 0)
		resident_read_blocks(space->resident, space->tid, there, n);
	for (size_t i = 0; i < n; i++)
		note_read(asked[i], space, there[i].is_read);
}

static void read_block(struct code_block *block, const struct address_space *space)
{
	struct resident_block there = {block->address, block->bytes, BLOCK_BYTES, false};

	if (space->resident && is_readable_code(space, block->address)) {
		resident_read_blocks(space->resident, space->tid, &there, 1);
		note_read(block, space, there.is_read);
		return;
	}
	block->read_ns = space->updated_ns;
	block->size = address_space_read_code(space, block->address, block->bytes, BLOCK_BYTES);
	block->is_absent = false;
}

static const struct code_block *get_block(struct code_blocks *blocks, uint64_t address,
                                          const struct address_space *space)
{
	struct code_block *block = block_of(blocks, address);

	if (blocks->now_ns != space->updated_ns) {
		read_ahead(blocks, space);
		blocks->now_ns = space->updated_ns;
	}
	if (block->address != address || block->read_ns != space->updated_ns || !block->read_ns) {
		block->address = address;
		read_block(block, space);
	}
	block->asked_ns = space->updated_ns;
	return block;
}

// Copies code from the blocks; returns how much of it there is. *ret_absent is set if some of it is
// not in memory.
static size_t copy(struct code_blocks *blocks, const struct address_space *space, uint64_t address,
                   uint8_t *ret, size_t size, bool *ret_absent)
{
	size_t done = 0;

	while (done < size) {
		const size_t into = (address + done) % BLOCK_BYTES;
		const struct code_block *block = get_block(blocks, address + done - into, space);
		const size_t left = block->size > into ? block->size - into : 0;
		const size_t n = left < size - done ? left : size - done;
		*ret_absent |= block->is_absent;
		if (n == 0)
			break;
		memcpy(ret + done, block->bytes + into, n);
		done += n;
	}
	return done;
}

bool code_bytes_are_valid(const struct code_bytes *bytes, struct code_blocks *blocks,
                          const struct address_space *space)
{
	uint8_t now[CODE_BYTES_MAX];
	bool is_absent = false;
	size_t size = 0;

	for (size_t i = 0; i < bytes->n; i++) {
		const size_t n = bytes->ranges[i].size;
		if (copy(blocks, space, bytes->ranges[i].address, now + size, n, &is_absent) != n)
			return is_absent;
		size += n;
	}
	return hash_bytes(now, size) == bytes->hash;
}
