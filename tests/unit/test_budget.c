// SPDX-License-Identifier: MIT
// budget: how much time a tick stands for, as plain values.
#include <math.h>

#include "budget.h"
#include "hash.h"
#include "memory.h"
#include "schedule.h"
#include "unit.h"

static const int64_t MS = 1000000, PERIOD_NS = 10000000;

// What each tick costs, and one of them more, over some seconds of a period of 10 ms.
struct testcase {
	const char *name;
	double percent;
	double seconds;
	int64_t cpu_ns, held_ns; // of each tick
	int64_t long_ns;         // what the 100th tick holds
	int n_long;              // and how many more do, each 100 ticks
	int least, most;         // ticks
	int64_t longest_ns;      // that one may stand for
};

static const struct testcase CASES[] = {
    {"no limit", 0, 10, 9 * MS, 9 * MS, 0, 0, 1000, 1000, 10 * MS},
    {"cheap", 5, 10, MS / 10, MS / 10, 0, 0, 1000, 1000, 10 * MS},
    {"just", 5, 10, MS / 2, MS / 2, 0, 0, 1000, 1000, 10 * MS},
    {"CPU twice as dear", 5, 10, MS, 0, 0, 0, 780, 820, 30 * MS},
    {"holds twice as dear", 5, 10, 0, MS, 0, 0, 500, 550, 30 * MS},
    {"one hold of 30 ms", 5, 10, 0, 0, 30 * MS, 0, 970, 999, 300 * MS},
    // 5 % of 18 s.
    {"one hold of 890 ms", 5, 10, 0, 0, 890 * MS, 0, 898, 902, 1000 * MS},
    {"one hold of 100 s", 5, 10, 0, 0, 100000 * MS, 0, 898, 902, 1000 * MS},
    // The second is not forgiven: 890 ms take 17.8 s, a tick in each second. So does the next.
    {"two holds of 890 ms", 5, 50, 0, 0, 890 * MS, 1, 3300, 3440, 1000 * MS},
    {"many holds of 890 ms", 5, 1000, 0, 0, 890 * MS, 1000, 10500, 12500, 1000 * MS},
    // Too dear at any rate: one a second.
    {"CPU of 500 ms", 5, 100, 500 * MS, 0, 0, 0, 100, 102, 1000 * MS},
    {"CPU of 0.1 ms and next to no share", 1e-9, 100, MS / 10, 0, 0, 0, 3060, 3080, 1000 * MS},
};

static void run(const struct testcase *testcase)
{
	struct budget_spent spent = {.now_ns = 5, .cpu_ns = 7, .held_ns = 900000 * MS};
	int64_t longest_ns = 0;
	uint64_t n = 0, n_left_out = 0;
	struct schedule schedule;
	struct stretch stretch;
	struct budget budget;

	budget_init(&budget, testcase->percent, &spent);
	schedule_init(&schedule, 5, PERIOD_NS, (int64_t)(testcase->seconds * 1e9), 7);
	while (!schedule_is_over(&schedule)) {
		spent.now_ns = schedule_due_ns(&schedule);
		schedule_take(&schedule, spent.now_ns, &stretch);
		n++;
		n_left_out += stretch.n_left_out;
		assert_int_equal(stretch.n_missed, 0);
		if (stretch.until_ns - stretch.from_ns > longest_ns)
			longest_ns = stretch.until_ns - stretch.from_ns;
		spent.cpu_ns += testcase->cpu_ns;
		const bool is_long = n % 100 == 0 && (int)n / 100 <= 1 + testcase->n_long;
		spent.held_ns += is_long ? testcase->long_ns : testcase->held_ns;
		const int64_t paid_ns = budget_paid_ns(&budget, &spent);
		if (paid_ns > spent.now_ns)
			schedule_extend(&schedule, spent.now_ns, paid_ns);
	}
	print_message("# %s: %d ticks, longest stretch %.0f ms\n", testcase->name, (int)n,
	              (double)longest_ns / 1e6);
	assert_in_range(n, testcase->least, testcase->most);
	assert_in_range(longest_ns, PERIOD_NS, testcase->longest_ns);
	assert_int_equal(n + n_left_out, (int64_t)(testcase->seconds * 1e9) / PERIOD_NS);
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(CASES); i++)
		run(&CASES[i]);
}

// A program that does `a` for 300 us, at a random place of each millisecond, and `b` for the rest;
// each tick that sees `a` costs ten times as much. Returns z of the share that a sampler with a
// period of 100 us finds in five seconds.
static double find_share(uint64_t seed, double percent)
{
	enum { LIFE_NS = 1000000, A_NS = 300000 };
	struct budget_spent spent = {0};
	double a_ns = 0, true_ns = 0, squares = 0;
	struct schedule schedule;
	struct stretch stretch;
	struct budget budget;
	const int64_t duration_ns = 5000 * MS;

	budget_init(&budget, percent, &spent);
	spent.cpu_ns = 300 * MS; // the loan: with it, ticks come at once after dear ones
	schedule_init(&schedule, 0, 100000, duration_ns, seed);
	while (!schedule_is_over(&schedule)) {
		if (spent.now_ns < schedule_due_ns(&schedule))
			spent.now_ns = schedule_due_ns(&schedule);
		schedule_take(&schedule, spent.now_ns, &stretch);
		const uint64_t dice = hash_mix(seed + 1, (uint64_t)(spent.now_ns / LIFE_NS));
		const int64_t into_ns = spent.now_ns % LIFE_NS - (int64_t)(dice % (LIFE_NS - A_NS));
		const bool is_a = into_ns >= 0 && into_ns < A_NS;
		const double weight_ns = (double)(stretch.until_ns - stretch.from_ns);
		assert_true(weight_ns <= SCHEDULE_MAX_NS);
		a_ns += is_a ? weight_ns : 0;
		true_ns += weight_ns;
		squares += weight_ns * weight_ns;
		const int64_t cost_ns = is_a ? 70000 : 7000;
		spent.now_ns += cost_ns;
		spent.cpu_ns += cost_ns;
		const int64_t paid_ns = budget_paid_ns(&budget, &spent);
		if (paid_ns > spent.now_ns)
			schedule_extend(&schedule, spent.now_ns, paid_ns);
	}
	assert_int_equal((int64_t)true_ns, duration_ns);
	return (a_ns - 0.3 * true_ns) / sqrt(0.3 * 0.7 * squares);
}

// The ticks are dearer in one function than in the other, and most are left out: its share is right
// all the same.
static void test_shares(void **state)
{
	static const double percents[] = {0.1, 1, 5};
	enum { N_SEEDS = 200 };

	(void)state;
	for (size_t i = 0; i < array_size(percents); i++) {
		double sum = 0, squares = 0;
		int n_beyond = 0;
		for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
			const double z = find_share(seed, percents[i]);
			sum += z;
			squares += z * z;
			n_beyond += fabs(z) > 3;
		}
		const double mean_z = sum / sqrt(N_SEEDS);
		print_message("# %g %%: z of the mean %.2f, of one seed +- %.2f, %d beyond 3\n",
		              percents[i], mean_z, sqrt(squares / N_SEEDS), n_beyond);
		assert_true(fabs(mean_z) < 3.5);
		assert_true(n_beyond <= N_SEEDS / 50);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
