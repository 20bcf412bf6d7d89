// SPDX-License-Identifier: MIT
// long_waits: which sleeps are kept, and of which threads.
#include "long_waits.h"
#include "memory.h"
#include "unit.h"

enum { LONG = 100, N_THREADS = 4 };

// Each thread's spans one after the other: states and lengths.
static const struct {
	uint32_t thread;
	enum thread_state state;
	int64_t length_ns;
} SPANS[] = {
    {0, THREAD_SLEEPING, LONG - 1}, {0, THREAD_RUNNING, 5 * LONG},  {0, THREAD_DISK, LONG},
    {1, THREAD_RUNNING, 9 * LONG},  {2, THREAD_SLEEPING, 3 * LONG}, {2, THREAD_RUNNING, 1},
    {2, THREAD_STOPPED, 2 * LONG},  {3, THREAD_SLEEPING, 4 * LONG},
};

static void watch(struct profile *profile, struct long_waits *waits)
{
	int64_t now_ns[N_THREADS] = {0};

	*profile = (struct profile){.period_ns = 1};
	for (int i = 0; i < N_THREADS; i++)
		profile_add_thread(profile, 1, 1 + i, "a", 0);
	long_waits_init(waits, LONG);
	profile_follow(profile, &waits->follower);
	for (size_t i = 0; i < array_size(SPANS); i++) {
		now_ns[SPANS[i].thread] += SPANS[i].length_ns;
		profile_count(profile, SPANS[i].thread, 0, SPANS[i].state, WAIT_NONE,
		              (uint64_t)SPANS[i].length_ns, now_ns[SPANS[i].thread]);
	}
	profile_end_spans(profile);
}

// Longest first; a thread that runs waits for nothing, however long.
static void test_longest_first(void **state)
{
	static const struct {
		uint32_t thread;
		int64_t wall_ns, since_ns;
	} expected[] = {
	    {3, 4 * LONG, 0},
	    {2, 3 * LONG, 0},
	    {2, 2 * LONG, 3 * LONG + 1},
	    {0, LONG, 6 * LONG - 1},
	};
	struct profile profile;
	struct long_waits waits;
	size_t n_threads, n_left_out;

	(void)state;
	watch(&profile, &waits);
	const struct profile view =
	    long_waits_view(&waits, &profile, N_THREADS, &n_threads, &n_left_out);
	assert_int_equal(n_threads, 3);
	assert_int_equal(n_left_out, 0);
	assert_int_equal(view.n_samples, array_size(expected));
	for (size_t i = 0; i < array_size(expected); i++) {
		const struct sample *sample = &view.samples[i];
		assert_int_equal(sample->thread, expected[i].thread);
		assert_int_equal(sample->wall_ns, expected[i].wall_ns);
		assert_int_equal(sample->count, expected[i].wall_ns);
		assert_int_equal(sample->since_ns, expected[i].since_ns);
		assert_true(sample->is_one_wait);
	}
	long_waits_deinit(&waits);
	profile_deinit(&profile);
}

// All waits of the threads that waited longest at a time, none of the others.
static void test_few_threads(void **state)
{
	struct profile profile;
	struct long_waits waits;
	size_t n_threads, n_left_out;

	(void)state;
	watch(&profile, &waits);
	const struct profile view = long_waits_view(&waits, &profile, 2, &n_threads, &n_left_out);
	assert_int_equal(n_threads, 2);
	assert_int_equal(n_left_out, 1);
	assert_int_equal(view.n_samples, 3);
	for (size_t i = 0; i < view.n_samples; i++)
		assert_true(view.samples[i].thread >= 2);
	long_waits_deinit(&waits);
	profile_deinit(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_longest_first),
	    cmocka_unit_test(test_few_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
