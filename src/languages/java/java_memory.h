// SPDX-License-Identifier: MIT
// java_memory: reads memory of a process with HotSpot, and only pages that are in memory.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "java_replay.h"
#include "resident.h"

// `resident` and `replay` are borrowed.
struct java_memory {
	struct resident *resident;
	int tid;                    // a live thread of the process
	struct java_replay *replay; // NULL: each read is made when it is asked for
};

// Reads those of the blocks that are in memory.
static inline void java_read_blocks(const struct java_memory *memory, struct resident_block *blocks,
                                    size_t n)
{
	if (memory->replay)
		java_replay_read(memory->replay, memory->resident, memory->tid, blocks, n);
	else
		resident_read_blocks(memory->resident, memory->tid, blocks, n);
}

// Reads all of the bytes, or nothing.
static inline bool java_read(const struct java_memory *memory, uint64_t address, void *bytes,
                             size_t size)
{
	struct resident_block block = {address, bytes, size, false};

	if (address == 0 || !memory->replay)
		return address != 0 &&
		       resident_read(memory->resident, memory->tid, address, bytes, size);
	java_read_blocks(memory, &block, 1);
	return block.is_read;
}

// Reads a word; 0 if it cannot be read.
static inline uint64_t java_read_word(const struct java_memory *memory, uint64_t address)
{
	uint64_t word = 0;

	return java_read(memory, address, &word, sizeof(word)) ? word : 0;
}
