// SPDX-License-Identifier: MIT
#include <math.h>

#include "clock.h"
#include "hash.h"
#include "profile.h"
#include "schedule.h"
#include "unit.h"

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
		schedule_take(&same, due_ns, &stretch);
		schedule_take(&other, schedule_due_ns(&other), &stretch);
		schedule_take(&one, due_ns, &stretch);
		assert_int_equal(stretch.n_missed, 0);
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
			schedule_take(&schedule, now_ns, &stretch);
			missed += stretch.n_missed;
			taken++;
			assert_int_equal(stretch.from_ns, until_ns);
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

static void check_rest(const struct schedule *schedule, int64_t now_ns, struct stretch expected)
{
	struct stretch rest;

	schedule_rest(schedule, START_NS + now_ns, &rest);
	assert_int_equal(rest.from_ns, START_NS + expected.from_ns);
	assert_int_equal(rest.until_ns, START_NS + expected.until_ns);
	assert_int_equal(rest.n_missed, expected.n_missed);
	assert_int_equal(rest.n_left_out, expected.n_left_out);
}

// What is left when sampling is told to end.
static void test_rest(void **state)
{
	struct schedule schedule;
	struct stretch stretch;

	(void)state;
	schedule_init(&schedule, START_NS, 100, 0, 7);
	check_rest(&schedule, 230, (struct stretch){0, 230, .n_missed = 2});
	schedule_take(&schedule, START_NS + 199, &stretch);
	check_rest(&schedule, 199, (struct stretch){.from_ns = 100, .until_ns = 199});
	check_rest(&schedule, 230, (struct stretch){.from_ns = 200, .until_ns = 230});
	check_rest(&schedule, 530, (struct stretch){200, 530, .n_missed = 3});
	schedule_extend(&schedule, START_NS + 199, START_NS + 500);
	check_rest(&schedule, 430, (struct stretch){200, 430, .n_left_out = 2});
	check_rest(&schedule, 730, (struct stretch){200, 730, .n_missed = 3, .n_left_out = 2});
	schedule_init(&schedule, START_NS, 100, 250, 7);
	check_rest(&schedule, 999, (struct stretch){0, 250, .n_missed = 2});
}

// One tick for several periods, at a random place of those that are still to come.
static void test_extend(void **state)
{
	enum { N = 1000 };
	int64_t sum_ns = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= N; seed++) {
		struct schedule schedule;
		struct stretch stretch;
		schedule_init(&schedule, START_NS, 100, 10050, seed);
		schedule_take(&schedule, START_NS + 99, &stretch);
		schedule_extend(&schedule, START_NS + 310, START_NS + 1301);
		const int64_t due_ns = schedule_due_ns(&schedule);
		assert_in_range(due_ns, START_NS + 300, START_NS + 1399);
		sum_ns += due_ns - START_NS - 300;
		schedule_take(&schedule, due_ns, &stretch);
		assert_int_equal(stretch.from_ns, START_NS + 100);
		assert_int_equal(stretch.until_ns, START_NS + 1400);
		assert_int_equal(stretch.due_ns, due_ns);
		assert_int_equal(stretch.n_missed, 2);
		assert_int_equal(stretch.n_left_out, 10);
		// Up to the end and not beyond.
		schedule_extend(&schedule, due_ns, START_NS + NS_PER_SECOND);
		assert_in_range(schedule_due_ns(&schedule), START_NS + 1400, START_NS + 10049);
		schedule_take(&schedule, schedule_due_ns(&schedule), &stretch);
		assert_int_equal(stretch.until_ns, START_NS + 10050);
		assert_true(schedule_is_over(&schedule));
		// One that takes a period is as long as that.
		schedule_init(&schedule, START_NS, 2 * NS_PER_SECOND, 0, seed);
		schedule_extend(&schedule, START_NS, START_NS + 9 * NS_PER_SECOND);
		schedule_take(&schedule, schedule_due_ns(&schedule), &stretch);
		assert_int_equal(stretch.n_left_out, 0);
	}
	assert_in_range(sum_ns / N, 550 - 3 * 10, 550 + 3 * 10); // 1100 / sqrt(12 N)
}

// A sampler that was away for long: nobody who is new counts as older than SCHEDULE_MAX_NS.
static void test_away(void **state)
{
	struct schedule schedule;
	struct stretch stretch;

	(void)state;
	schedule_init(&schedule, 0, 100, 0, 7);
	schedule_take(&schedule, 10 * NS_PER_SECOND, &stretch);
	assert_int_equal(stretch.until_ns - stretch.from_ns, SCHEDULE_MAX_NS);
	assert_in_range(stretch.n_missed, 99999998, 100000000);
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
		for (int target_hz = 33; target_hz <= 1000; target_hz += 3, n++)
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

// Threads that live for LIFE_NS, one after the other. Each is seen by chance, and stands then for
// all the time since the last tick. What they weigh together is the time that they lived, whatever
// part of the ticks is left out or missed. Returns z of that.
static double find_lives(uint64_t seed, uint64_t n_periods, bool late)
{
	enum { PERIOD_NS = 1000, LIFE_NS = 700, PAUSE_NS = 1137, DURATION_NS = 40000 * PERIOD_NS };
	struct profile profile = {.period_ns = PERIOD_NS};
	struct schedule schedule;
	double squares = 0;
	int64_t wall_ns = 0, last = -1;
	uint32_t thread = 0;

	schedule_init(&schedule, 0, PERIOD_NS, DURATION_NS, seed);
	for (int64_t now_ns = 0; !schedule_is_over(&schedule);) {
		struct stretch stretch;
		if (now_ns < schedule_due_ns(&schedule))
			now_ns = schedule_due_ns(&schedule);
		const uint64_t dice = hash_mix(seed, (uint64_t)now_ns);
		if (late && dice % 16 == 0)
			now_ns += (int64_t)((dice >> 8) % (3 * PERIOD_NS));
		schedule_take(&schedule, now_ns, &stretch);
		const int64_t at_ns = now_ns + (int64_t)(hash_mix(seed, 99) % PERIOD_NS);
		const double weight_ns = (double)(stretch.until_ns - stretch.from_ns);
		squares += weight_ns * weight_ns;
		schedule_extend(&schedule, now_ns, stretch.until_ns + n_periods * PERIOD_NS);
		if (at_ns % (LIFE_NS + PAUSE_NS) >= LIFE_NS)
			continue; // nobody is there
		if (at_ns / (LIFE_NS + PAUSE_NS) != last)
			thread = profile_add_thread(&profile, 1, 1, "", stretch.from_ns);
		last = at_ns / (LIFE_NS + PAUSE_NS);
		profile_count(&profile, thread, 0, THREAD_RUNNING, WAIT_NONE, 1, stretch.until_ns);
	}
	for (size_t i = 0; i < profile.n_samples; i++)
		wall_ns += profile.samples[i].wall_ns;
	profile_deinit(&profile);
	const double share = (double)LIFE_NS / (LIFE_NS + PAUSE_NS);
	return ((double)wall_ns - share * DURATION_NS) / sqrt(share * (1 - share) * squares);
}

static void check_lives(uint64_t n_periods, bool late)
{
	enum { N = 50 };
	double sum = 0;

	for (uint64_t seed = 1; seed <= N; seed++)
		sum += find_lives(seed, n_periods, late);
	print_message("# one tick for %d periods%s: z of the mean %.2f\n", (int)n_periods,
	              late ? ", late now and then" : "", sum / sqrt(N));
	assert_true(fabs(sum / sqrt(N)) < 3);
}

static void test_short_lives(void **state)
{
	(void)state;
	check_lives(1, false);
	check_lives(3, false);
	check_lives(20, false);
	check_lives(1, true);
	check_lives(3, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_places),      cmocka_unit_test(test_late),
	    cmocka_unit_test(test_extend),      cmocka_unit_test(test_away),
	    cmocka_unit_test(test_rest),        cmocka_unit_test(test_shares),
	    cmocka_unit_test(test_shares_late), cmocka_unit_test(test_short_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
