// SPDX-License-Identifier: MIT
#include "java_unloads.h"

#include <string.h>

#include "java_layout.h"
#include "java_memory.h"
#include "memory.h"

enum {
	MAX_COUNTERS = 4096,
	MAX_BYTES = 1 << 20, // of all; there are 32 KB (-XX:PerfDataMemorySize)
	// PerfDataPrologue
	MAGIC = (int)0xc0c0feca,
	ACCESSIBLE_AT = 7,
	FIRST_ENTRY_AT = 24,
	N_ENTRIES_AT = 28,
	PROLOGUE_BYTES = 32,
	// PerfDataEntry
	NAME_AT = 4, // its offset in the entry
	VALUE_AT = 16,
	ENTRY_BYTES = 20,
};

static uint32_t u32_at(const uint8_t *bytes, uint64_t at)
{
	uint32_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

// True if the string is at that place among the bytes.
static bool is_at(const uint8_t *bytes, uint64_t size, uint64_t at, const char *string)
{
	const size_t length = strlen(string) + 1;

	return at < size && length <= size - at && memcmp(bytes + at, string, length) == 0;
}

// Returns where the value is among the bytes; 0: it is not there.
static uint64_t search(const uint8_t *bytes, uint64_t size)
{
	const uint32_t n = u32_at(bytes, N_ENTRIES_AT);
	uint64_t at = u32_at(bytes, FIRST_ENTRY_AT);

	for (uint32_t i = 0; i < n && i < MAX_COUNTERS && at < size && size - at >= ENTRY_BYTES;
	     i++) {
		const uint32_t length = u32_at(bytes, at);
		const uint64_t value = at + u32_at(bytes, at + VALUE_AT);
		if (is_at(bytes, size, at + u32_at(bytes, at + NAME_AT),
		          "java.cls.unloadedClasses"))
			return value < size && size - value >= sizeof(uint64_t) ? value : 0;
		if (length == 0)
			return 0;
		at += length;
	}
	return 0;
}

bool java_unloads_find(const struct java_memory *memory, const struct java_layout *layout,
                       uint64_t *ret)
{
	const uint64_t start = java_read_word(memory, layout->perf_start);
	const uint64_t size = java_read_word(memory, layout->perf_top) - start;

	*ret = 0;
	if (start == 0)
		return false; // there are none, or not yet
	if (size < PROLOGUE_BYTES || size > MAX_BYTES)
		return false;
	_cleanup_free_ uint8_t *bytes = memory_alloc(size);
	if (!java_read(memory, start, bytes, size) || u32_at(bytes, 0) != (uint32_t)MAGIC ||
	    bytes[ACCESSIBLE_AT] == 0)
		return false;
	const uint64_t at = search(bytes, size);
	*ret = at ? start + at : 0;
	return at != 0;
}
