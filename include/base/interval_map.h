// SPDX-License-Identifier: MIT
// interval_map: from an address to the best of the intervals that hold it.
//
// Intervals are added in any order, may overlap, nest and repeat; building cuts them into disjoint
// segments, so that a look-up is one binary search whatever they look like. Where several hold an
// address, the one of the highest priority wins, then the one that starts last, then the one that
// was added last.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define INTERVAL_NONE UINT32_MAX

struct interval {
	uint64_t start, end; // [start, end)
	uint32_t value;
	uint32_t priority;
	uint32_t order; // position of adding
};

struct interval_segment {
	uint64_t start; // up to the next one's start
	uint32_t value;
};

// A zeroed struct interval_map is an empty map.
struct interval_map {
	struct interval *intervals; // until it is built
	size_t n_intervals, intervals_capacity;
	struct interval_segment *segments; // once it is built
	size_t n_segments, segments_capacity;
};

void interval_map_deinit(struct interval_map *map);

// Adds [start, end) for `value`; an empty one is ignored.
void interval_map_add(struct interval_map *map, uint64_t start, uint64_t end, uint32_t value,
                      uint32_t priority);

// Call it once, after the last interval. It takes n log n time.
void interval_map_build(struct interval_map *map);

// The value at the address, or INTERVAL_NONE.
uint32_t interval_map_find(const struct interval_map *map, uint64_t address);
