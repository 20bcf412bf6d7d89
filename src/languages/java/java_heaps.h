// SPDX-License-Identifier: MIT
// java_heaps: HotSpot's code cache: finds the block of memory that holds an address of code.
//
// The cache has one heap or three (codeCache.hpp). A heap is divided into segments; each has a byte
// that says how far back its block begins (heap.hpp: CodeHeap::find_start).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "java_layout.h"
#include "java_memory.h"

enum { JAVA_MAX_HEAPS = 8 };

struct java_heap {
	uint64_t low, limit; // addresses; it grows up to the limit
	uint64_t segments;   // the address of the bytes
	unsigned int log2;   // of the bytes in a segment
};

struct java_heaps {
	struct java_heap items[JAVA_MAX_HEAPS];
	size_t n;
	uint64_t low, limit; // of all together
};

// False if it cannot be read, or is not made yet.
bool java_heaps_read(const struct java_memory *memory, const struct java_layout *layout,
                     struct java_heaps *ret);

// Returns the block (HeapBlock) that holds the address; 0: none.
uint64_t java_heaps_find(const struct java_heaps *heaps, const struct java_memory *memory,
                         uint64_t pc);

// Returns the heap that holds the address; NULL: none.
static inline const struct java_heap *java_heaps_of(const struct java_heaps *heaps, uint64_t pc)
{
	if (pc < heaps->low || pc >= heaps->limit)
		return NULL;
	for (size_t i = 0; i < heaps->n; i++)
		if (pc >= heaps->items[i].low && pc < heaps->items[i].limit)
			return &heaps->items[i];
	return NULL;
}
