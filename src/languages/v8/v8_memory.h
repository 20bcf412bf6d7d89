// SPDX-License-Identifier: MIT
// v8_memory: V8's values in the memory of a process. A value is a small integer (Smi), whose lowest
// bit is 0, or a pointer to an object, which is the object's address + 1.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "resident.h"
#include "v8_layout.h"

// Types of Maps that were asked for, by address: those of V8's own kinds of objects stay as they
// are.
struct v8_types {
	uint64_t maps[64];
	uint16_t types[64];
};

struct v8_memory {
	struct resident *resident; // borrowed
	int tid;                   // a live thread of the process
	struct v8_types *types;    // borrowed
	size_t *n_left;            // characters of strings that may still be read
};

static inline bool v8_is_object(uint64_t value)
{
	return (value & 3) == 1;
}

static inline bool v8_is_smi(uint64_t value)
{
	return (uint32_t)value == 0;
}

static inline int32_t v8_smi(uint64_t value)
{
	return (int32_t)(value >> 32);
}

// Returns the word at that offset of an object that was read.
static inline uint64_t v8_word_at(const uint8_t *bytes, int32_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static inline bool v8_read(const struct v8_memory *memory, uint64_t address, void *bytes,
                           size_t size)
{
	return resident_read(memory->resident, memory->tid, address, bytes, size);
}

// Reads from the object on that the value points to. False if it points to none.
static inline bool v8_read_object(const struct v8_memory *memory, uint64_t value, void *bytes,
                                  size_t size)
{
	return v8_is_object(value) && v8_read(memory, value - 1, bytes, size);
}

// Returns the instance type that a Map stands for; -1: the value is no Map.
static inline int32_t v8_map_type(const struct v8_memory *memory, uint64_t map)
{
	const size_t i = map * 0x9e3779b97f4a7c15u >> 58;
	struct v8_types *types = memory->types;
	uint16_t type;

	if (!v8_is_object(map))
		return -1;
	if (types->maps[i] == map)
		return types->types[i];
	if (!v8_read(memory, map - 1 + V8_MAP_TYPE, &type, sizeof(type)))
		return -1;
	types->maps[i] = map;
	types->types[i] = type;
	return type;
}

// Returns the type of the object that the value points to; -1: it points to none, or the garbage
// collector is moving it.
static inline int32_t v8_type(const struct v8_memory *memory, uint64_t value)
{
	uint64_t map;

	return v8_read_object(memory, value, &map, sizeof(map)) ? v8_map_type(memory, map) : -1;
}
