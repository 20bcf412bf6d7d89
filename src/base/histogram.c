// SPDX-License-Identifier: MIT
#include "histogram.h"

// Values below 2^SUB_BITS have a bucket each; above, each power of two has 2^SUB_BITS.
static unsigned int bucket_of(uint64_t value)
{
	if (value >> HISTOGRAM_SUB_BITS == 0)
		return value;
	const unsigned int shift = 63 - __builtin_clzll(value) - HISTOGRAM_SUB_BITS;
	return ((shift + 1) << HISTOGRAM_SUB_BITS) +
	       ((value >> shift) & ((1 << HISTOGRAM_SUB_BITS) - 1));
}

// The largest value of the bucket.
static uint64_t bucket_end(unsigned int bucket)
{
	const unsigned int group = bucket >> HISTOGRAM_SUB_BITS;
	const uint64_t sub = bucket & ((1 << HISTOGRAM_SUB_BITS) - 1);

	if (group == 0)
		return sub;
	return (((UINT64_C(1) << HISTOGRAM_SUB_BITS) + sub + 1) << (group - 1)) - 1;
}

void histogram_add(struct histogram *histogram, int64_t duration_ns)
{
	const int64_t value = duration_ns > 0 ? duration_ns : 0;

	histogram->counts[bucket_of(value)]++;
	histogram->total++;
	if (value > histogram->max_ns)
		histogram->max_ns = value;
}

int64_t histogram_percentile(const struct histogram *histogram, double share)
{
	const double wanted = share * (double)histogram->total;
	uint64_t seen = 0;

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += histogram->counts[i];
		if (seen > 0 && (double)seen >= wanted) {
			const int64_t end = (int64_t)bucket_end(i);
			return end < histogram->max_ns ? end : histogram->max_ns;
		}
	}
	return 0;
}
