// SPDX-License-Identifier: MIT
// java_memory: reads memory of a process with HotSpot, and only pages that are in memory.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resident.h"

// `resident` is borrowed.
struct java_memory {
	struct resident *resident;
	int tid; // a live thread of the process
};

// Reads all of the bytes, or nothing.
static inline bool java_read(const struct java_memory *memory, uint64_t address, void *bytes,
                             size_t size)
{
	return address != 0 && resident_read(memory->resident, memory->tid, address, bytes, size);
}

// Reads a word; 0 if it cannot be read.
static inline uint64_t java_read_word(const struct java_memory *memory, uint64_t address)
{
	uint64_t word = 0;

	return java_read(memory, address, &word, sizeof(word)) ? word : 0;
}
