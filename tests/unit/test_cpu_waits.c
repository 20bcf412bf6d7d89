// SPDX-License-Identifier: MIT
// When waits for CPUs are told of, with which cause; and the figures of a part of the time.
#include <string.h>

#include "clock.h"
#include "cpu_waits.h"
#include "memory.h"
#include "profile.h"
#include "report_fixture.h"
#include "unit.h"

#define MS NS_PER_MS

static const struct {
	struct cpu_waits figures;
	size_t n_threads;
	const char *text; // NULL: nothing is told
} cases[] = {
    {{.at_ns = 3000 * MS, .cpu_ns = 1343 * MS, .delay_ns = 21848 * MS, .n_cpus = 1},
     8,
     "waited 21.8 s for a CPU, and ran for 1.34 s: 8 threads share 1 CPU"},
    {{.at_ns = 3000 * MS, .cpu_ns = 5000 * MS, .delay_ns = 5000 * MS, .n_cpus = 2},
     4,
     "waited 5 s for a CPU, and ran for 5 s: 4 threads share 2 CPUs"},
    {{.at_ns = 3000 * MS, .cpu_ns = 800 * MS, .delay_ns = 400 * MS, .n_cpus = 2},
     2,
     "waited 0.4 s for a CPU, and ran for 0.8 s: other processes use its CPUs as well"},
    {{.at_ns = 3000 * MS, .cpu_ns = 800 * MS, .delay_ns = 400 * MS, .n_cpus = 1},
     1,
     "waited 0.4 s for a CPU, and ran for 0.8 s: other processes use its CPU as well"},
    {{.at_ns = 3000 * MS, .cpu_ns = 800 * MS, .delay_ns = 400 * MS},
     2,
     "waited 0.4 s for a CPU, and ran for 0.8 s"},
    // A command that ends at once.
    {{.at_ns = 40 * MS, .cpu_ns = MS / 50, .delay_ns = 20 * MS},
     1,
     "waited 0.020 s for a CPU, and ran for 0.000 s"},
    {{.at_ns = 4 * MS, .cpu_ns = MS / 50, .delay_ns = 3 * MS}, 1, NULL},
    // The limit explains it, but not if it was used up but once.
    {{.at_ns = 3000 * MS,
      .cpu_ns = 900 * MS,
      .delay_ns = 2000 * MS,
      .n_cpus = 1,
      .limit = 300,
      .n_periods = 30,
      .n_throttled = 27},
     8,
     "waited 2 s for a CPU, and ran for 0.9 s: its control group may use 0.3 CPUs, and "
     "was throttled in 27 of 30 periods"},
    {{.at_ns = 3000 * MS,
      .cpu_ns = 900 * MS,
      .delay_ns = 2000 * MS,
      .n_cpus = 1,
      .n_periods = 30,
      .n_throttled = 3},
     8,
     "waited 2 s for a CPU, and ran for 0.9 s: its control group was throttled in 3 of "
     "30 periods"},
    {{.at_ns = 3000 * MS,
      .cpu_ns = 900 * MS,
      .delay_ns = 4000 * MS,
      .n_cpus = 1,
      .limit = 1500,
      .n_periods = 30,
      .n_throttled = 1},
     8,
     "waited 4 s for a CPU, and ran for 0.9 s: 8 threads share 1 CPU"},
    // Threads that would fit in the CPUs in turns are kept waiting by others, however many they
    // are.
    {{.at_ns = 5000 * MS, .cpu_ns = 137 * MS, .delay_ns = 600 * MS, .n_cpus = 2},
     6,
     "waited 0.6 s for a CPU, and ran for 0.137 s: other processes use its CPUs as well"},
    {{.at_ns = 5000 * MS, .cpu_ns = 9000 * MS, .delay_ns = 3000 * MS, .n_cpus = 2},
     6,
     "waited 3 s for a CPU, and ran for 9 s: 6 threads share 2 CPUs"},
    // Alone, its three threads would wait for a third of what they want.
    {{.at_ns = 6000 * MS, .cpu_ns = 776 * MS, .delay_ns = 17700 * MS, .n_cpus = 2},
     3,
     "waited 17.7 s for a CPU, and ran for 0.776 s: other processes use its CPUs as well"},
    // Whatever its threads want, they had next to nothing.
    {{.at_ns = 6000 * MS, .cpu_ns = 42 * MS, .delay_ns = 51600 * MS, .n_cpus = 2},
     14,
     "waited 51.6 s for a CPU, and ran for 0.042 s: other processes use its CPUs as well"},
    // A fifth, or moments, are not told of.
    {{.at_ns = 3000 * MS, .cpu_ns = 800 * MS, .delay_ns = 200 * MS, .n_cpus = 1}, 8, NULL},
    {{.at_ns = 3000 * MS, .cpu_ns = 10 * MS, .delay_ns = 290 * MS, .n_cpus = 1}, 8, NULL},
    {{0}, 0, NULL},
};

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		bool by_others;
		_cleanup_free_ char *text =
		    cpu_waits_text(&cases[i].figures, cases[i].n_threads, &by_others);
		if (cases[i].text)
			assert_string_equal(text, cases[i].text);
		else
			assert_null(text);
		assert_int_equal(by_others, text && strstr(text, "other processes"));
	}
}

static void test_between(void **state)
{
	static const struct {
		int64_t from_ms, to_ms, at_ms, cpu_ms;
	} parts[] = {
	    {0, INT32_MAX, 3000, 70}, {0, 1000, 1000, 10},   {1000, 2000, 1000, 20},
	    {1400, 2600, 2000, 60},   {900, 2900, 2000, 60}, {400, 1400, 1000, 10},
	    {2600, 3000, 0, 0},       {4000, 5000, 0, 0},
	};
	struct cpu_log log = {0};

	(void)state;
	assert_int_equal(cpu_log_between(&log, 0, INT64_MAX).at_ns, 0);
	for (int64_t i = 1; i <= 3; i++)
		cpu_log_add(&log, &(struct cpu_waits){
		                      .at_ns = i * 1000 * MS,
		                      .cpu_ns = 10 * MS * ((1 << i) - 1),
		                      .n_cpus = 4,
		                      .n_periods = 10 - (uint64_t)i, // of another group
		                  });
	for (size_t i = 0; i < array_size(parts); i++) {
		const struct cpu_waits figures =
		    cpu_log_between(&log, parts[i].from_ms * MS, parts[i].to_ms * MS);
		assert_int_equal(figures.at_ns, parts[i].at_ms * MS);
		assert_int_equal(figures.cpu_ns, parts[i].cpu_ms * MS);
		assert_true(figures.n_periods <= 9);
	}
	cpu_log_deinit(&log);
}

static void test_sums(void **state)
{
	struct cpu_waits figures;
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	const uint32_t a = report_fixture_thread(&f, 1, "a"), b = report_fixture_thread(&f, 2, "b");
	report_fixture_thread(&f, 3, "unknown");
	cpu_waits_sum(&figures, &f.profile);
	assert_int_equal(figures.cpu_ns, -1);
	f.profile.threads[a].kernel_cpu_ns = 5;
	f.profile.threads[a].kernel_delay_ns = 6;
	f.profile.threads[b].kernel_cpu_ns = 70;
	f.profile.threads[b].kernel_delay_ns = 80;
	f.profile.forgotten.kernel_cpu_ns = 900;
	f.profile.forgotten.kernel_delay_ns = 1000;
	cpu_waits_sum(&figures, &f.profile);
	assert_int_equal(figures.cpu_ns, 975);
	assert_int_equal(figures.delay_ns, 1086);
	report_fixture_deinit(&f);
}

static void test_threads(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	assert_int_equal(cpu_waits_count_threads(&f.profile), 0);
	for (int i = 0; i < 6; i++) {
		const uint32_t thread = report_fixture_thread(&f, i + 1, "t");
		const enum thread_state states[] = {THREAD_SLEEPING, THREAD_RUNNING,
		                                    THREAD_RUNNABLE};
		report_fixture_sample(&f, thread, states[i % 3], NULL, 0, STACK_NOT_SAMPLED, 100);
	}
	assert_int_equal(cpu_waits_count_threads(&f.profile), 4);
	// One that hardly ever runs does not count.
	const uint32_t idle = report_fixture_thread(&f, 9, "idle");
	report_fixture_sample(&f, idle, THREAD_RUNNING, NULL, 0, STACK_NOT_SAMPLED, 1);
	assert_int_equal(cpu_waits_count_threads(&f.profile), 4);
	// Ten that live for a tenth of the time, such as one for each request, are one at a time.
	for (int i = 0; i < 10; i++) {
		const uint32_t request = report_fixture_thread(&f, 20 + i, "request");
		report_fixture_sample(&f, request, THREAD_RUNNING, NULL, 0, STACK_NOT_SAMPLED, 10);
	}
	assert_int_equal(cpu_waits_count_threads(&f.profile), 5);
	report_fixture_deinit(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_texts),
	    cmocka_unit_test(test_between),
	    cmocka_unit_test(test_sums),
	    cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
