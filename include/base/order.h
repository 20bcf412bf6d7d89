// SPDX-License-Identifier: MIT
// order: the smaller and the larger of two numbers, and numbers in order.
#pragma once

#include <stdint.h>

static inline uint64_t order_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t order_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline int64_t order_max_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

// For qsort(3) and bsearch(3).
static inline int order_of_ints(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}
