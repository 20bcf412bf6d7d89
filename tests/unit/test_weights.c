// SPDX-License-Identifier: MIT
// weights: the books, the edges, and a simulation of the estimator.
#include "unit.h"
#include <math.h>
#include <stdlib.h>

#include "memory.h"
#include "profile.h"
#include "weights.h"

enum { MS = 1000000, PERIOD = 10 * MS, PID = 7 };

static const struct {
	const char *name;
	struct weight_sums sums;               // ms
	int64_t counted_ms, cpu_ms, delay_ms;  // by the kernel; counted_ms 0: unknown
	int64_t expected_ms[N_WEIGHT_CLASSES]; // of sampled time
	int64_t unseen_ms[N_WEIGHT_CLASSES];
} CASES[] = {
    {"as counted", {100, {500, 100, 400}}, 1000, 400, 200, {400, 200, 400}, {0}},
    {"counted for 90 % of the time", {100, {500, 100, 400}}, 900, 360, 180, {400, 200, 400}, {0}},
    {"not counted", {100, {500, 100, 400}}, 0, 400, 200, {500, 100, 400}, {0}},
    {"counted for a third of the time", {100, {500, 100, 400}}, 333, 40, 20, {500, 100, 400}, {0}},
    {"few ticks", {15, {50, 50, 50}}, 150, 150, 0, {50, 50, 50}, {0}},
    {"a class that no tick saw", {100, {0, 0, 1000}}, 1000, 300, 0, {0, 0, 700}, {300, 0, 0}},
    {"a class too short to be seen", {100, {0, 0, 1000}}, 1000, 15, 0, {0, 0, 1000}, {0}},
    {"a class that was not there", {100, {100, 100, 800}}, 1000, 200, 0, {200, 0, 800}, {0}},
    {"a wait that began before", {100, {500, 500, 0}}, 1000, 700, 900, {700, 300, 0}, {0}},
    {"a wait that is not over", {100, {500, 500, 0}}, 1000, 300, 200, {300, 700, 0}, {0}},
    {"more than there was", {100, {500, 500, 0}}, 1000, 1100, 300, {1000, 0, 0}, {0}},
    {"few samples, little time", {100, {30, 0, 970}}, 1000, 70, 0, {30, 0, 970}, {0}},
    {"one small class of three", {1000, {4000, 30, 5970}}, 10000, 5000, 70, {5020, 30, 4950}, {0}},
    {"more active than the kernel counts",
     {1000, {4000, 0, 6000}},
     10000,
     2000,
     0,
     {4000, 0, 6000},
     {0}},
    {"figures that go back", {100, {500, 100, 400}}, 1000, -5, 0, {500, 100, 400}, {0}},
};

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(CASES); i++) {
		struct weight_sums sums = CASES[i].sums;
		const struct thread_figures from = {.at_ns = CASES[i].counted_ms ? 5 * MS : 0,
		                                    .cpu_ns = 70 * MS,
		                                    .delay_ns = 80 * MS};
		const struct thread_figures to = {.at_ns = (5 + CASES[i].counted_ms) * MS,
		                                  .cpu_ns = (70 + CASES[i].cpu_ms) * MS,
		                                  .delay_ns = (80 + CASES[i].delay_ms) * MS};
		struct weights weights;
		for (int class = 0; class < N_WEIGHT_CLASSES; class ++)
			sums.wall_ns[class] *= MS;
		weights_find(&sums, &from, &to, PERIOD, &weights);
		for (int class = 0; class < N_WEIGHT_CLASSES; class ++) {
			const double weighed_ms =
			    (double)sums.wall_ns[class] * weights.factor[class] / MS;
			if (fabs(weighed_ms - (double)CASES[i].expected_ms[class]) > 0.5 ||
			    llabs(weights.unseen_ns[class] / MS - CASES[i].unseen_ms[class]) > 1)
				fail_msg("%s: class %d: %g, %jd", CASES[i].name, class, weighed_ms,
				         (intmax_t)weights.unseen_ns[class]);
		}
	}
}

// A thread that is gone before its figures are read a second time stays as sampled.
static void test_read_once(void **state)
{
	const struct weight_sums sums = {100, {500 * MS, 100 * MS, 400 * MS}};
	const struct thread_figures once = {.at_ns = 5 * MS, .cpu_ns = 1, .delay_ns = 1};
	struct weights weights;

	(void)state;
	weights_find(&sums, &once, &once, PERIOD, &weights);
	for (int class = 0; class < N_WEIGHT_CLASSES; class ++)
		assert_true(weights.factor[class] == 1 && weights.unseen_ns[class] == 0);
	assert_true(weights.cpu_share == 1);
}

static uint32_t add_thread(struct profile *profile, int tid)
{
	return profile_add_thread(profile, PID, tid, "t", 0);
}

// Odd weights of many samples still add up to the time that was watched, and to the kernel's.
static void test_books(void **state)
{
	struct profile profile = {.period_ns = PERIOD};
	const uint32_t thread = add_thread(&profile, PID);
	struct weighed weighed;
	int64_t wall_ns = 0, cpu_ns = 0, now_ns = 0;

	(void)state;
	profile_note_figures(&profile, thread, &(struct thread_figures){1, 1000, 2000, 0, 0});
	for (uint32_t i = 0; i < 300; i++) {
		const uint32_t stack = profile_intern_stack(&profile, NULL, 0, i % 7, false);
		now_ns += PERIOD + i % 13;
		profile_count(&profile, thread, stack, i % 3 ? THREAD_RUNNING : THREAD_SLEEPING,
		              WAIT_NONE, 1, now_ns);
	}
	profile_note_figures(&profile, thread,
	                     &(struct thread_figures){now_ns, 1000 + now_ns / 7 * 5, 2000, 0, 0});
	weighed_init(&weighed, &profile);
	for (size_t i = 0; i < weighed.profile.n_samples; i++) {
		wall_ns += weighed.profile.samples[i].wall_ns;
		cpu_ns += weighed.profile.samples[i].cpu_ns;
	}
	assert_true(llabs(wall_ns - now_ns) <= 2);
	assert_true(llabs(cpu_ns - now_ns / 7 * 5) <= 2);
	weighed_deinit(&weighed);
	profile_deinit(&profile);
}

// Where the ticks' word is taken for how long a thread was active, its CPU time is still the
// kernel's.
static void test_more_active(void **state)
{
	struct profile profile = {.period_ns = PERIOD};
	const uint32_t thread = add_thread(&profile, PID);
	struct weighed weighed;

	(void)state;
	profile_note_figures(&profile, thread, &(struct thread_figures){1, 0, 0, 0, 0});
	const uint32_t stack = profile_intern_stack(&profile, NULL, 0, STACK_COMPLETE, false);
	profile_count(&profile, thread, stack, THREAD_RUNNING, WAIT_NONE, 100, 100 * PERIOD);
	profile_count(&profile, thread, stack, THREAD_SLEEPING, WAIT_NONE, 100, 200 * PERIOD);
	profile_note_figures(&profile, thread,
	                     &(struct thread_figures){200 * PERIOD, 50 * PERIOD, 0, 0, 0});
	weighed_init(&weighed, &profile);
	assert_int_equal(weighed.profile.samples[0].wall_ns, 100 * PERIOD);
	assert_true(llabs(weighed.profile.samples[0].cpu_ns - 50 * PERIOD) <= 2);
	weighed_deinit(&weighed);
	profile_deinit(&profile);
}

// Goroutines are not what the kernel counts.
static void test_goroutines(void **state)
{
	struct profile profile = {.period_ns = PERIOD};
	const uint32_t thread = add_thread(&profile, PID);
	struct weighed weighed;

	(void)state;
	profile_add_task(&profile, PID, 1, "g", 0);
	profile_note_figures(&profile, thread, &(struct thread_figures){1, 0, 0, 0, 0});
	const uint32_t stack = profile_intern_stack(&profile, NULL, 0, STACK_COMPLETE, false);
	profile_count(&profile, thread, stack, THREAD_RUNNING, WAIT_NONE, 100, 100 * PERIOD);
	profile_note_figures(&profile, thread,
	                     &(struct thread_figures){100 * PERIOD, 50 * PERIOD, 0, 0, 0});
	weighed_init(&weighed, &profile);
	assert_int_equal(weighed.profile.samples[0].cpu_ns, 100 * PERIOD);
	weighed_deinit(&weighed);
	profile_deinit(&profile);
}

// A thread computes in a (30 %) and b (10 %), and sleeps in c (60 %), for random times. Ticks
// see it at random moments; what the ticks see is compared with the time that it took.
enum { RUNS = 400, TICKS = 200, A = 0, B, C, N_PLACES };

static double uniform(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(*seed >> 11) / (double)(1ULL << 53);
}

struct simulated {
	double true_ms[N_PLACES], raw_ms[N_PLACES], weighed_ms[N_PLACES];
};

// `seen`: which share of the ticks that fall into computing see it; 1: all.
static struct simulated simulate(uint64_t *seed, double seen)
{
	struct simulated one = {0};
	struct weight_sums sums = {0};
	struct weights weights;
	double end_ms = 0, tick_ms = uniform(seed) * 10;
	const double mean_ms[N_PLACES] = {3, 1, 6};

	for (int place = 0; end_ms < TICKS * 10.0; place = (place + 1) % N_PLACES) {
		const double length_ms = 2 * mean_ms[place] * uniform(seed);
		end_ms += length_ms;
		one.true_ms[place] += length_ms;
		for (; tick_ms < end_ms; tick_ms = (floor(tick_ms / 10) + 1 + uniform(seed)) * 10) {
			const int found = place != C && uniform(seed) > seen ? C : place;
			one.raw_ms[found] += 10;
			sums.ticks++;
			sums.wall_ns[found == C ? WEIGHT_BLOCKED : WEIGHT_RUNNING] += PERIOD;
		}
	}
	const struct thread_figures from = {.at_ns = 1};
	const struct thread_figures to = {
	    .at_ns = 1 + (int64_t)(end_ms * MS),
	    .cpu_ns = (int64_t)((one.true_ms[A] + one.true_ms[B]) * MS),
	};
	weights_find(&sums, &from, &to, PERIOD, &weights);
	for (int place = 0; place < N_PLACES; place++)
		one.weighed_ms[place] =
		    one.raw_ms[place] *
		    weights.factor[place == C ? WEIGHT_BLOCKED : WEIGHT_RUNNING];
	return one;
}

static void sum_errors(double seen, double ret_raw[2], double ret_weighed[2])
{
	uint64_t seed = 1;

	ret_raw[0] = ret_raw[1] = ret_weighed[0] = ret_weighed[1] = 0;
	for (int i = 0; i < RUNS; i++) {
		const struct simulated one = simulate(&seed, seen);
		const double raw = one.raw_ms[A] - one.true_ms[A];
		const double weighed = one.weighed_ms[A] - one.true_ms[A];
		ret_raw[0] += raw / RUNS;
		ret_raw[1] += raw * raw / RUNS;
		ret_weighed[0] += weighed / RUNS;
		ret_weighed[1] += weighed * weighed / RUNS;
	}
}

// Many threads that each run for a moment: together they have the time that they took.
static void test_rare(void **state)
{
	const double length_ms = 25;
	double found_ms = 0, true_ms = 0;
	uint64_t seed = 7;

	(void)state;
	for (int thread = 0; thread < 4000; thread++) {
		struct weight_sums sums = {.ticks = TICKS};
		struct weights weights;
		const double begin_ms = uniform(&seed) * (TICKS * 10 - length_ms);
		for (int tick = 0; tick < TICKS; tick++) {
			const double at_ms = (tick + uniform(&seed)) * 10;
			const bool runs = at_ms >= begin_ms && at_ms < begin_ms + length_ms;
			sums.wall_ns[runs ? WEIGHT_RUNNING : WEIGHT_BLOCKED] += PERIOD;
		}
		const struct thread_figures from = {.at_ns = 1};
		const struct thread_figures to = {.at_ns = 1 + (int64_t)TICKS * PERIOD,
		                                  .cpu_ns = (int64_t)(length_ms * MS)};
		weights_find(&sums, &from, &to, PERIOD, &weights);
		found_ms +=
		    (double)sums.wall_ns[WEIGHT_RUNNING] * weights.factor[WEIGHT_RUNNING] / MS;
		true_ms += length_ms;
	}
	assert_true(fabs(found_ms / true_ms - 1) < 0.02);
}

static void test_simulation(void **state)
{
	double raw[2], weighed[2];

	(void)state;
	sum_errors(1, raw, weighed);
	// Without bias (3 sigma of the mean), and with less variance.
	assert_true(weighed[0] * weighed[0] < 9 * weighed[1] / RUNS);
	assert_true(weighed[1] < 0.6 * raw[1]);
	// A sampler that comes too late for half of the computing: raw halves it.
	sum_errors(0.5, raw, weighed);
	assert_true(raw[0] < -250);
	assert_true(weighed[0] * weighed[0] < 9 * weighed[1] / RUNS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),       cmocka_unit_test(test_read_once),
	    cmocka_unit_test(test_books),       cmocka_unit_test(test_goroutines),
	    cmocka_unit_test(test_simulation),  cmocka_unit_test(test_rare),
	    cmocka_unit_test(test_more_active),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
