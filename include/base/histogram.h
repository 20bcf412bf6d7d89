// SPDX-License-Identifier: MIT
// histogram: counts of durations in buckets of about 3 % width, for percentiles in fixed memory.
#pragma once

#include <stdint.h>

enum { HISTOGRAM_SUB_BITS = 5, HISTOGRAM_BUCKETS = 64 << HISTOGRAM_SUB_BITS };

struct histogram {
	uint64_t counts[HISTOGRAM_BUCKETS];
	uint64_t total;
	int64_t max_ns; // exact
};

// Negative durations count as 0.
void histogram_add(struct histogram *histogram, int64_t duration_ns);

// The duration that `share` (0 to 1) of all do not exceed, to within a bucket; 0 when empty.
int64_t histogram_percentile(const struct histogram *histogram, double share);
