// SPDX-License-Identifier: MIT
// top_order: rows of a live table that keep their places for some seconds: what jumps cannot be
// read.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct top_table;

struct top_order {
	uint64_t *ids; // of the rows, as they were sorted last
	size_t n, capacity;
	int64_t at_ns;  // when that was
	uint64_t sorts; // what they were sorted by then
};

void top_order_deinit(struct top_order *order);

// Gives the rows the places that they had when they were sorted last, unless that is long ago or
// `sorts`, a number for what they are sorted by, is another one. New rows come last.
void top_order_keep(struct top_order *order, struct top_table *table, int64_t now_ns,
                    uint64_t sorts);
