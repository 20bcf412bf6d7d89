// SPDX-License-Identifier: MIT
// budget: which ticks are left out, as plain values.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "budget.h"
#include "memory.h"

static const int64_t MS = 1000000, PERIOD_NS = 10000000;

// What each tick costs, and one of them more, over some seconds of ticks every 10 ms.
struct testcase {
	const char *name;
	double percent;
	double seconds;
	int64_t cpu_ns, held_ns; // of each tick that is taken
	int64_t long_ns;         // what the 100th tick that is taken holds
	int n_long;              // and how many more do, each 100 ticks
	int least, most;         // of the ticks that are taken
	int64_t silence_ns;      // the longest that may be between two
};

static const struct testcase CASES[] = {
    {"no limit", 0, 10, 9 * MS, 9 * MS, 0, 0, 1000, 1000, 10 * MS},
    {"cheap", 5, 10, MS / 10, MS / 10, 0, 0, 1000, 1000, 10 * MS},
    {"just", 5, 10, MS / 2, MS / 2, 0, 0, 1000, 1000, 10 * MS},
    {"CPU twice as dear", 5, 10, MS, 0, 0, 0, 780, 820, 30 * MS},
    {"holds twice as dear", 5, 10, 0, MS, 0, 0, 500, 550, 30 * MS},
    {"one hold of 30 ms", 5, 10, 0, 0, 30 * MS, 0, 970, 999, 300 * MS},
    // 5 % of 18 s.
    {"one hold of 890 ms", 5, 10, 0, 0, 890 * MS, 0, 898, 901, 1010 * MS},
    {"one hold of 100 s", 5, 10, 0, 0, 100000 * MS, 0, 898, 901, 1010 * MS},
    // The second is not forgiven: 890 ms take 17.8 s, and so does the next.
    {"two holds of 890 ms", 5, 50, 0, 0, 890 * MS, 1, 3300, 3400, 19000 * MS},
    // Holds cost twice the share at most, in the long run.
    {"many holds of 890 ms", 5, 1000, 0, 0, 890 * MS, 1000, 10500, 11500, 19000 * MS},
};

static void run(const struct testcase *testcase)
{
	struct budget_spent spent = {.now_ns = 5, .cpu_ns = 7, .held_ns = 900000 * MS};
	int64_t last_ns = spent.now_ns, silence_ns = 0, held_ns = 0;
	const int64_t end_ns = (int64_t)(testcase->seconds * 1e9);
	struct budget budget;
	int n = 0;

	budget_init(&budget, testcase->percent, &spent);
	for (; spent.now_ns < end_ns; spent.now_ns += PERIOD_NS) {
		if (!budget_allows(&budget, &spent))
			continue;
		n++;
		silence_ns =
		    spent.now_ns - last_ns > silence_ns ? spent.now_ns - last_ns : silence_ns;
		last_ns = spent.now_ns;
		spent.cpu_ns += testcase->cpu_ns;
		held_ns = testcase->held_ns;
		if (n % 100 == 0 && n / 100 <= 1 + testcase->n_long)
			held_ns = testcase->long_ns;
		spent.held_ns += held_ns;
	}
	print_message("# %s: %d ticks, longest silence %.0f ms\n", testcase->name, n,
	              (double)silence_ns / 1e6);
	assert_in_range(n, testcase->least, testcase->most);
	assert_in_range(silence_ns, 0, testcase->silence_ns);
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(CASES); i++)
		run(&CASES[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
