// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "clock.h"
#include "hash.h"
#include "profile.h"
#include "schedule.h"

enum { START_NS = 1000 };

static int64_t period_of(double hz)
{
	return (int64_t)((double)NS_PER_SECOND / hz);
}

// One in each period, at places that the seed alone makes.
static void test_places(void **state)
{
	struct schedule one, same, other;
	uint64_t n_early = 0, n_equal = 0;

	(void)state;
	schedule_init(&one, START_NS, 100, 1050, 7);
	schedule_init(&same, START_NS, 100, 0, 7);
	schedule_init(&other, START_NS, 100, 0, 8);
	for (int i = 0; i < 11; i++) {
		const int64_t due_ns = schedule_due_ns(&one), begin_ns = START_NS + i * 100;
		const int64_t end_ns = i < 10 ? begin_ns + 100 : begin_ns + 50;
		struct stretch stretch;
		assert_false(schedule_is_over(&one));
		assert_in_range(due_ns, begin_ns, end_ns - 1);
		assert_true(i == 10 || due_ns == schedule_due_ns(&same));
		n_equal += due_ns == schedule_due_ns(&other);
		n_early += due_ns < begin_ns + 50;
		assert_int_equal(schedule_take(&same, due_ns, &stretch), 0);
		schedule_take(&other, schedule_due_ns(&other), &stretch);
		assert_int_equal(schedule_take(&one, due_ns, &stretch), 0);
		assert_int_equal(stretch.from_ns, begin_ns);
		assert_int_equal(stretch.until_ns, end_ns);
	}
	assert_true(n_equal < 5);
	assert_in_range(n_early, 1, 10);
	assert_true(schedule_is_over(&one));
	assert_int_equal(schedule_due_ns(&one), START_NS + 1050);
	assert_false(schedule_is_over(&same));
}

// Ticks that come late: each due one is taken or missed, never made up, and what they stand for
// never goes back, nor beyond the end.
static void test_late(void **state)
{
	enum { PERIOD_NS = 1000, DURATION_NS = 1234567 };

	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct schedule schedule;
		struct stretch stretch;
		int64_t now_ns = START_NS, until_ns = START_NS;
		uint64_t taken = 0, missed = 0;
		schedule_init(&schedule, START_NS, PERIOD_NS, DURATION_NS, seed);
		while (!schedule_is_over(&schedule)) {
			const uint64_t dice = hash_mix(seed, (uint64_t)now_ns);
			const int64_t late_ns = dice % 8 ? 0 : (int64_t)(dice >> 32 & 8191);
			if (now_ns < schedule_due_ns(&schedule))
				now_ns = schedule_due_ns(&schedule);
			now_ns += late_ns;
			missed += schedule_take(&schedule, now_ns, &stretch);
			taken++;
			assert_true(stretch.from_ns >= until_ns && stretch.from_ns <= now_ns);
			assert_true(stretch.until_ns > stretch.from_ns);
			assert_true(stretch.until_ns > now_ns - 2 * PERIOD_NS ||
			            now_ns > DURATION_NS);
			assert_true(schedule_is_over(&schedule) ||
			            schedule_due_ns(&schedule) > now_ns);
			until_ns = stretch.until_ns;
		}
		assert_true(missed > 0);
		assert_int_equal(taken + missed, (DURATION_NS + PERIOD_NS - 1) / PERIOD_NS);
		assert_int_equal(until_ns, START_NS + DURATION_NS);
	}
}

// What is left when sampling is told to end.
static void test_rest(void **state)
{
	struct schedule schedule;
	struct stretch rest;

	(void)state;
	schedule_init(&schedule, START_NS, 100, 0, 7);
	assert_int_equal(schedule_rest(&schedule, START_NS + 230, &rest), 2);
	assert_int_equal(rest.from_ns, START_NS + 200);
	assert_int_equal(rest.until_ns, START_NS + 230);
	schedule_take(&schedule, START_NS + 199, &rest);
	assert_int_equal(schedule_rest(&schedule, START_NS + 199, &rest), 0);
	assert_int_equal(schedule_rest(&schedule, START_NS + 230, &rest), 0);
	assert_int_equal(schedule_rest(&schedule, START_NS + 530, &rest), 3);
	schedule_init(&schedule, START_NS, 100, 250, 7);
	assert_int_equal(schedule_rest(&schedule, START_NS + 999, &rest), 2);
	assert_int_equal(rest.from_ns, START_NS + 200);
	assert_int_equal(rest.until_ns, START_NS + 250);
}

// A program that does one thing for SHARE of each of its periods, then another, from some phase
// on; and one that samples it for five seconds. Returns true if the shares that it finds, by
// samples and by time, lie within three standard deviations of the truth.
static bool finds_share(double hz, double target_hz, uint64_t seed, bool late)
{
	const double share = 0.3;
	const int64_t duration_ns = 5 * NS_PER_SECOND, target_ns = period_of(target_hz);
	const int64_t phase_ns = (int64_t)(hash_mix(seed, 99) % (uint64_t)target_ns);
	struct profile profile = {.period_ns = period_of(hz)};
	const uint32_t thread = profile_add_thread(&profile, 1, 1, "", 0);
	struct schedule schedule;
	struct stretch stretch;
	double squares = 0;

	schedule_init(&schedule, 0, profile.period_ns, duration_ns, seed);
	for (int64_t now_ns = 0; !schedule_is_over(&schedule);) {
		if (now_ns < schedule_due_ns(&schedule))
			now_ns = schedule_due_ns(&schedule);
		// Now and then late by up to three periods, whatever the target does.
		const uint64_t dice = hash_mix(seed, (uint64_t)now_ns);
		if (late && dice % 16 == 0)
			now_ns += (int64_t)((dice >> 8) % (uint64_t)(3 * profile.period_ns));
		schedule_take(&schedule, now_ns, &stretch);
		const int64_t at_ns = (now_ns + phase_ns) % target_ns;
		const bool first = (double)at_ns < share * (double)target_ns;
		const double weight_ns = (double)(stretch.until_ns - profile.threads[0].last_ns);
		squares += weight_ns * weight_ns;
		profile_count(&profile, thread, first, THREAD_RUNNING, WAIT_NONE, 1,
		              stretch.until_ns);
	}
	double count = 0, first_count = 0, wall_ns = 0, first_ns = 0;
	for (size_t i = 0; i < profile.n_samples; i++) {
		const struct sample *sample = &profile.samples[i];
		count += (double)sample->count;
		wall_ns += (double)sample->wall_ns;
		first_count += sample->stack ? (double)sample->count : 0;
		first_ns += sample->stack ? (double)sample->wall_ns : 0;
	}
	assert_int_equal((int64_t)wall_ns, duration_ns);
	profile_deinit(&profile);
	// Squares of the errors, and of three standard deviations; where ticks were missed, samples
	// weigh more than others, which are fewer in effect.
	const double by_count = first_count / count - share, by_wall = first_ns / wall_ns - share;
	const double bound = 9 * share * (1 - share);
	return by_count * by_count <= bound / count &&
	       by_wall * by_wall <= bound * squares / wall_ns / wall_ns;
}

// Whatever a program's rate is, a multiple or a part of the profiler's too.
static void find_shares(bool late)
{
	static const double rates[] = {99, 100, 999, 1000};
	uint64_t n = 0, n_wrong = 0;

	for (size_t i = 0; i < 4; i++) {
		for (int target_hz = 33; target_hz <= 1000; target_hz++, n++)
			n_wrong += !finds_share(rates[i], target_hz, n + 1, late);
	}
	print_message("# %d of %d shares beyond 3 sigma\n", (int)n_wrong, (int)n);
	assert_true(n_wrong * 100 <= n);
}

static void test_shares(void **state)
{
	(void)state;
	find_shares(false);
}

static void test_shares_late(void **state)
{
	(void)state;
	find_shares(true);
}

// Threads that live for less than a period, one after the other: each is seen by chance, and stands
// then for the whole period. What they weigh together is the time that they lived.
static void test_short_lives(void **state)
{
	enum { PERIOD_NS = 1000, LIFE_NS = 300, PAUSE_NS = 137, DURATION_NS = 4000 * PERIOD_NS };
	struct profile profile = {.period_ns = PERIOD_NS};
	struct schedule schedule;
	int64_t wall_ns = 0;

	(void)state;
	schedule_init(&schedule, 0, PERIOD_NS, DURATION_NS, 3);
	while (!schedule_is_over(&schedule)) {
		const int64_t now_ns = schedule_due_ns(&schedule);
		struct stretch stretch;
		assert_int_equal(schedule_take(&schedule, now_ns, &stretch), 0);
		if (now_ns % (LIFE_NS + PAUSE_NS) >= LIFE_NS)
			continue; // nobody is there
		const uint32_t thread = profile_add_thread(&profile, 1, 1, "", stretch.from_ns);
		profile_count(&profile, thread, 0, THREAD_RUNNING, WAIT_NONE, 1, stretch.until_ns);
		profile_end_thread(&profile, thread);
	}
	for (size_t i = 0; i < profile.n_samples; i++)
		wall_ns += profile.samples[i].wall_ns;
	profile_deinit(&profile);
	const double share = (double)LIFE_NS / (LIFE_NS + PAUSE_NS);
	const double error = (double)wall_ns / DURATION_NS - share;
	assert_true(error * error <= 9 * share * (1 - share) * PERIOD_NS / DURATION_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_places),      cmocka_unit_test(test_late),
	    cmocka_unit_test(test_rest),        cmocka_unit_test(test_shares),
	    cmocka_unit_test(test_shares_late), cmocka_unit_test(test_short_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
