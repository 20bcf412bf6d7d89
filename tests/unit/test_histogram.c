// SPDX-License-Identifier: MIT
// histogram: exact sums, and percentiles to within a bucket's width.
#include "histogram.h"
#include "unit.h"

static void test_empty(void **state)
{
	struct histogram histogram = {0};

	(void)state;
	assert_int_equal(histogram_percentile(&histogram, 0.0), 0);
	assert_int_equal(histogram_percentile(&histogram, 0.5), 0);
	assert_int_equal(histogram_percentile(&histogram, 1.0), 0);
}

static void test_sums(void **state)
{
	struct histogram histogram = {0};

	(void)state;
	histogram_add(&histogram, 5);
	histogram_add(&histogram, 1000);
	histogram_add(&histogram, -3);
	assert_int_equal(histogram.total, 3);
	assert_int_equal(histogram.max_ns, 1000);
	assert_int_equal(histogram_percentile(&histogram, 0.0), 0);
	assert_int_equal(histogram_percentile(&histogram, 1.0), 1000);
}

// One value is found again: not below itself, and above it by less than a bucket.
static void test_every_magnitude(void **state)
{
	(void)state;
	for (int bit = 0; bit < 63; bit++) {
		for (int delta = -1; delta <= 1; delta++) {
			const int64_t value = (int64_t)((UINT64_C(1) << bit) + (uint64_t)delta);
			const int64_t larger = value < INT64_MAX / 4 ? value * 2 + 2 : 0;
			struct histogram histogram = {0};

			histogram_add(&histogram, value);
			assert_int_equal(histogram_percentile(&histogram, 1.0), value);
			if (!larger)
				continue;
			histogram_add(&histogram, larger);
			const int64_t found = histogram_percentile(&histogram, 0.5);
			assert_true(found >= value);
			assert_true(found - value <= value / 32);
			assert_int_equal(histogram_percentile(&histogram, 1.0), larger);
		}
	}
}

static void test_percentiles(void **state)
{
	struct histogram histogram = {0};

	(void)state;
	for (int64_t i = 1; i <= 1000; i++)
		histogram_add(&histogram, i * 1000);
	for (int percent = 1; percent <= 100; percent++) {
		const int64_t exact = percent * 10000;
		const int64_t found = histogram_percentile(&histogram, percent / 100.0);

		assert_true(found >= exact - 1000);
		assert_true(found <= exact + exact / 32 + 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_empty),
	    cmocka_unit_test(test_sums),
	    cmocka_unit_test(test_every_magnitude),
	    cmocka_unit_test(test_percentiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
