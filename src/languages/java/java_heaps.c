// SPDX-License-Identifier: MIT
#include "java_heaps.h"

enum {
	MAX_LOG2 = 16, // of the bytes in a segment; HotSpot has 6 or 7
	WINDOW_BYTES = 256,
	MAX_WINDOWS = 512,
	FREE_SEGMENT = 0xff, // no block in use begins before it
};

// What the code cache may take (CODE_CACHE_SIZE_LIMIT).
#define MAX_HEAP_BYTES (2ull << 30)

static bool read_heap(const struct java_memory *memory, const struct java_layout *layout,
                      uint64_t address, struct java_heap *ret)
{
	const uint64_t space = address + (uint64_t)layout->heap_memory;
	const uint64_t segments = address + (uint64_t)layout->heap_segments;
	int32_t log2 = 0;

	if (!java_read(memory, address + (uint64_t)layout->heap_log2, &log2, sizeof(log2)) ||
	    log2 < 0 || log2 > MAX_LOG2)
		return false;
	*ret = (struct java_heap){
	    .low = java_read_word(memory, space + (uint64_t)layout->space_low),
	    .limit = java_read_word(memory, space + (uint64_t)layout->space_limit),
	    .segments = java_read_word(memory, segments + (uint64_t)layout->space_low),
	    .log2 = (unsigned int)log2,
	};
	return ret->low != 0 && ret->limit > ret->low && ret->limit - ret->low <= MAX_HEAP_BYTES &&
	       ret->segments != 0;
}

bool java_heaps_read(const struct java_memory *memory, const struct java_layout *layout,
                     struct java_heaps *ret)
{
	const uint64_t array = java_read_word(memory, layout->heaps);
	int32_t length = 0;

	*ret = (struct java_heaps){.low = UINT64_MAX};
	if (array == 0 ||
	    !java_read(memory, array + (uint64_t)layout->array_length, &length, sizeof(length)))
		return false;
	const uint64_t data = java_read_word(memory, array + (uint64_t)layout->array_data);
	if (data == 0 || length <= 0 || length > JAVA_MAX_HEAPS)
		return false;
	for (; ret->n < (size_t)length; ret->n++) {
		struct java_heap *heap = &ret->items[ret->n];
		const uint64_t address = java_read_word(memory, data + ret->n * sizeof(address));
		if (address == 0 || !read_heap(memory, layout, address, heap))
			return false;
		ret->low = heap->low < ret->low ? heap->low : ret->low;
		ret->limit = heap->limit > ret->limit ? heap->limit : ret->limit;
	}
	return true;
}

// Goes back in steps of at most 254 segments, so that a window holds at least one step.
uint64_t java_heaps_find(const struct java_heaps *heaps, const struct java_memory *memory,
                         uint64_t pc)
{
	const struct java_heap *heap = java_heaps_of(heaps, pc);
	uint8_t window[WINDOW_BYTES];

	if (!heap)
		return 0;
	uint64_t segment = (pc - heap->low) >> heap->log2;
	for (int i = 0; i < MAX_WINDOWS; i++) {
		const uint64_t n = segment + 1 < WINDOW_BYTES ? segment + 1 : WINDOW_BYTES;
		const uint64_t first = segment + 1 - n;
		if (!java_read(memory, heap->segments + first, window, n))
			return 0;
		while (segment >= first && window[segment - first] != 0) {
			const uint8_t back = window[segment - first];
			if (back == FREE_SEGMENT || back > segment)
				return 0;
			segment -= back;
		}
		if (segment >= first)
			return heap->low + (segment << heap->log2);
	}
	return 0;
}
