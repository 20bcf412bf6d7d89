// SPDX-License-Identifier: MIT
// interval_map: against a search through all intervals, for many random sets of them.
#include "interval_map.h"
#include "unit.h"

enum { MAX_ADDRESS = 64, MAX_INTERVALS = 24, N_ROUNDS = 3000 };

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

// What the header says, word for word.
static uint32_t expected(const struct interval *all, size_t n, uint64_t address)
{
	const struct interval *best = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct interval *one = &all[i];

		if (address < one->start || address >= one->end)
			continue;
		if (!best || one->priority > best->priority ||
		    (one->priority == best->priority && one->start >= best->start))
			best = one;
	}
	return best ? best->value : INTERVAL_NONE;
}

static void test_random(void **state)
{
	uint32_t random = 1;

	(void)state;
	for (int round = 0; round < N_ROUNDS; round++) {
		struct interval all[MAX_INTERVALS];
		struct interval_map map = {0};
		size_t n = next_random(&random) % MAX_INTERVALS;
		uint32_t priorities = 1 + next_random(&random) % 4;

		for (size_t i = 0; i < n; i++) {
			uint64_t start = next_random(&random) % MAX_ADDRESS;

			all[i] = (struct interval){
			    .start = start,
			    .end = start + next_random(&random) % 16,
			    .value = next_random(&random) % 8,
			    .priority = next_random(&random) % priorities,
			};
			interval_map_add(&map, all[i].start, all[i].end, all[i].value,
			                 all[i].priority);
		}
		interval_map_build(&map);
		for (uint64_t address = 0; address < MAX_ADDRESS + 20; address++)
			assert_int_equal(interval_map_find(&map, address),
			                 expected(all, n, address));
		interval_map_deinit(&map);
	}
}

static void test_extremes(void **state)
{
	struct interval_map map = {0};

	(void)state;
	assert_int_equal(interval_map_find(&map, 0), INTERVAL_NONE);
	interval_map_add(&map, 10, 10, 1, 0);
	interval_map_add(&map, 10, 5, 1, 0);
	interval_map_add(&map, 0, UINT64_MAX, 2, 0);
	interval_map_add(&map, UINT64_MAX - 1, UINT64_MAX, 3, 0);
	interval_map_build(&map);
	assert_int_equal(interval_map_find(&map, 0), 2);
	assert_int_equal(interval_map_find(&map, 10), 2);
	assert_int_equal(interval_map_find(&map, UINT64_MAX - 1), 3);
	assert_int_equal(interval_map_find(&map, UINT64_MAX), INTERVAL_NONE);
	interval_map_deinit(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
