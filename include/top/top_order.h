// SPDX-License-Identifier: MIT
// top_order: keeps the rows of a live table in their places for some seconds, as nobody can read
// rows that jump.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct top_table;

struct top_order {
	uint64_t *ids; // of the rows, in the order in which they were last sorted
	size_t n, capacity;
	int64_t at_ns;  // when they were sorted
	uint64_t sorts; // a number for what they were sorted by
};

void top_order_deinit(struct top_order *order);

// Puts the rows where they were when they were last sorted, with new ones at the end; keeps the
// table's own order if that was long ago, or if `sorts`, a number for what the table is sorted by,
// has changed.
void top_order_keep(struct top_order *order, struct top_table *table, int64_t now_ns,
                    uint64_t sorts);
