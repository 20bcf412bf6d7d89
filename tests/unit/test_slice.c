// SPDX-License-Identifier: MIT
#include "hash.h"
#include "memory.h"
#include "slice.h"
#include "unit.h"

static void test_ticks_before(void **state)
{
	const struct span span = {.count = 4, .start_ns = 100, .end_ns = 500};
	const struct span instant = {.count = 1, .start_ns = 100, .end_ns = 100};
	static const struct {
		int64_t ns;
		uint64_t ticks;
	} cases[] = {{0, 0},   {100, 0}, {200, 0}, {201, 1},       {300, 1},
	             {301, 2}, {500, 3}, {501, 4}, {INT64_MAX, 4}, {INT64_MIN, 0}};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++)
		assert_int_equal(span_ticks_before(&span, cases[i].ns), cases[i].ticks);
	assert_int_equal(span_ticks_before(&instant, 100), 0);
	assert_int_equal(span_ticks_before(&instant, 101), 1);
}

// Slices that follow each other add up to the whole, wherever they are cut.
static void test_slices_add_up(void **state)
{
	enum { N_SPANS = 400, N_SLICES = 7 };
	struct profile profile = {.period_ns = 10};
	struct slice slices[N_SLICES];
	const uint32_t thread = profile_add_thread(&profile, 1, 1, "a", 0);
	const int64_t cuts[N_SLICES + 1] = {INT64_MIN, 17, 18, 500, 501, 1900, 2222, INT64_MAX};
	int64_t now_ns = 0;

	(void)state;
	for (size_t i = 0; i < N_SLICES; i++) {
		slice_init(&slices[i], cuts[i], cuts[i + 1]);
		profile_follow(&profile, &slices[i].follower);
	}
	for (uint64_t i = 0; i < N_SPANS; i++) {
		const uint64_t dice = hash_mix(i, 1);
		now_ns += dice >> 8 & 15;
		profile_count(&profile, thread, dice & 7, (enum thread_state)(dice >> 3 & 3),
		              WAIT_NONE, 1 + (dice >> 5 & 7), now_ns);
	}
	profile_end_spans(&profile);
	for (size_t i = 0; i < profile.n_samples; i++) {
		struct sample sum = {0};
		for (size_t k = 0; k < N_SLICES; k++) {
			if (i >= slices[k].n_sums)
				continue;
			sum.count += slices[k].sums[i].count;
			sum.wall_ns += slices[k].sums[i].wall_ns;
			sum.cpu_ns += slices[k].sums[i].cpu_ns;
		}
		assert_int_equal(sum.count, profile.samples[i].count);
		assert_int_equal(sum.wall_ns, profile.samples[i].wall_ns);
		assert_int_equal(sum.cpu_ns, profile.samples[i].cpu_ns);
	}
	const struct profile view = slice_view(&slices[3], &profile);
	assert_true(view.n_samples > 0 && view.n_samples <= profile.n_samples);
	for (size_t i = 0; i < view.n_samples; i++)
		assert_true(view.samples[i].count > 0);
	for (size_t i = 0; i < N_SLICES; i++)
		slice_deinit(&slices[i]);
	profile_deinit(&profile);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ticks_before),
	    cmocka_unit_test(test_slices_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
