// SPDX-License-Identifier: MIT
#include "interval_map.h"

#include <stdbool.h>
#include <stdlib.h>

#include "memory.h"

void interval_map_deinit(struct interval_map *map)
{
	free(map->intervals);
	free(map->segments);
	*map = (struct interval_map){0};
}

void interval_map_add(struct interval_map *map, uint64_t start, uint64_t end, uint32_t value,
                      uint32_t priority)
{
	if (start >= end || map->n_intervals == UINT32_MAX)
		return;
	uint32_t order = map->n_intervals;
	*array_push(map->intervals, map->n_intervals, map->intervals_capacity) = (struct interval){
	    .start = start, .end = end, .value = value, .priority = priority, .order = order};
}

static int compare_start(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static bool is_better(const struct interval *a, const struct interval *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority;
	if (a->start != b->start)
		return a->start > b->start;
	return a->order > b->order;
}

// The open intervals at the sweep's address: a binary heap, the best on top.
struct heap {
	const struct interval **items;
	size_t count, capacity;
};

static void heap_push(struct heap *heap, const struct interval *item)
{
	size_t i = heap->count;

	*array_push(heap->items, heap->count, heap->capacity) = item;
	while (i > 0 && is_better(item, heap->items[(i - 1) / 2])) {
		heap->items[i] = heap->items[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap->items[i] = item;
}

static void heap_pop(struct heap *heap)
{
	const struct interval *last = heap->items[--heap->count];
	size_t i = 0;

	for (size_t child = 1; child < heap->count; child = 2 * i + 1) {
		if (child + 1 < heap->count &&
		    is_better(heap->items[child + 1], heap->items[child]))
			child++;
		if (!is_better(heap->items[child], last))
			break;
		heap->items[i] = heap->items[child];
		i = child;
	}
	heap->items[i] = last;
}

static void add_segment(struct interval_map *map, uint64_t start, uint32_t value)
{
	uint32_t before =
	    map->n_segments ? map->segments[map->n_segments - 1].value : INTERVAL_NONE;

	if (value == before)
		return;
	*array_push(map->segments, map->n_segments, map->segments_capacity) =
	    (struct interval_segment){.start = start, .value = value};
}

// Sweeps over the starts, and the ends of what is on top. Each turn opens or closes an interval,
// so there are at most twice as many turns as intervals.
void interval_map_build(struct interval_map *map)
{
	struct heap heap = {0};
	size_t next = 0;

	if (map->n_intervals)
		qsort(map->intervals, map->n_intervals, sizeof(*map->intervals), compare_start);
	while (next < map->n_intervals || heap.count) {
		uint64_t at = heap.count ? heap.items[0]->end : UINT64_MAX;

		if (next < map->n_intervals && map->intervals[next].start < at)
			at = map->intervals[next].start;
		while (next < map->n_intervals && map->intervals[next].start == at)
			heap_push(&heap, &map->intervals[next++]);
		while (heap.count && heap.items[0]->end <= at)
			heap_pop(&heap);
		add_segment(map, at, heap.count ? heap.items[0]->value : INTERVAL_NONE);
	}
	free(heap.items);
	free(map->intervals);
	map->intervals = NULL;
	map->n_intervals = map->intervals_capacity = 0;
}

uint32_t interval_map_find(const struct interval_map *map, uint64_t address)
{
	size_t low = 0, high = map->n_segments; // the first segment that starts beyond it

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->segments[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? map->segments[low - 1].value : INTERVAL_NONE;
}
