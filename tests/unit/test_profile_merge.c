// SPDX-License-Identifier: MIT
// profile_merge: several profiles in one, weighted: what is the same comes together, sums add up.
#include "unit.h"
#include <string.h>

#include "clock.h"
#include "profile_merge.h"
#include "report_fixture.h"
#include "syscall_numbers.h"

enum { TICK_NS = 10 * NS_PER_MS };

// A run of one thread: `in_work` ticks in main;work, and as many in main;rest as it rests.
static void make_run(struct report_fixture *run, int tid, uint64_t in_work, uint64_t resting)
{
	report_fixture_init(run);
	const uint32_t thread = report_fixture_thread(run, tid, "worker");
	const uint32_t main_id = report_fixture_frame(run, "main");
	const uint32_t stacks[2][2] = {{report_fixture_frame(run, "work"), main_id},
	                               {report_fixture_frame(run, "rest"), main_id}};

	report_fixture_sample(run, thread, THREAD_RUNNING, stacks[0], 2, STACK_COMPLETE, in_work);
	report_fixture_wait(run, thread, THREAD_SLEEPING, stacks[1], 2, STACK_COMPLETE,
	                    profile_intern_wait(&run->profile, SYS_futex, "", ""), resting);
}

static void add(struct merged *merged, const struct report_fixture *run, double weight)
{
	merged_add(merged, &run->profile, &run->modules, &run->symbols, weight);
}

static const char *leaf_name(const struct merged *merged, const struct sample *sample)
{
	const struct profile *profile = &merged->profile;
	const struct symbols *symbols = &merged->symbols;
	const uint32_t location = profile->location_ids[profile->stacks[sample->stack].first];

	assert_int_equal(symbols->locations[location].count, 1);
	return symbols->functions[symbols->lines[symbols->locations[location].first].function].name;
}

static void test_the_same_comes_together(void **state)
{
	struct report_fixture a, b;
	struct merged merged = {0};

	(void)state;
	make_run(&a, 7, 3, 5);
	make_run(&b, 8, 10, 0);
	add(&merged, &a, 1);
	const size_t n_stacks = merged.profile.n_stacks, n_modules = merged.modules.count;
	const size_t n_locations = merged.profile.n_locations;
	add(&merged, &b, 2);
	assert_int_equal(merged.profile.n_stacks, n_stacks);
	assert_int_equal(merged.profile.n_locations, n_locations);
	assert_int_equal(merged.modules.count, n_modules);
	// Threads stay apart.
	assert_int_equal(merged.profile.n_threads, 2);
	assert_int_equal(merged.profile.threads[0].tid, 7);
	assert_int_equal(merged.profile.threads[1].tid, 8);
	merged_deinit(&merged);
	report_fixture_deinit(&a);
	report_fixture_deinit(&b);
}

static void test_sums_are_weighed(void **state)
{
	struct report_fixture a, b;
	struct merged merged = {0};
	int64_t work_ns = 0, rest_ns = 0, cpu_ns = 0, count = 0;

	(void)state;
	make_run(&a, 7, 3, 5);
	make_run(&b, 7, 10, 4);
	add(&merged, &a, -1);
	add(&merged, &b, 0.5);
	for (size_t i = 0; i < merged.profile.n_samples; i++) {
		const struct sample *sample = &merged.profile.samples[i];
		const bool works = strcmp(leaf_name(&merged, sample), "work") == 0;
		assert_int_equal(works, sample->wait == WAIT_NONE);
		*(works ? &work_ns : &rest_ns) += sample->wall_ns;
		cpu_ns += sample->cpu_ns;
		count += (int64_t)sample->count;
	}
	assert_int_equal(work_ns, (-3 + 5) * TICK_NS);
	assert_int_equal(rest_ns, (-5 + 2) * TICK_NS);
	assert_int_equal(cpu_ns, work_ns);
	assert_int_equal(count, -8 + 7);
	merged_deinit(&merged);
	report_fixture_deinit(&a);
	report_fixture_deinit(&b);
}

// A recording may say what it likes, and so may whoever weighs it.
static void test_sums_are_bounded(void **state)
{
	struct report_fixture run;
	struct merged merged = {0};

	(void)state;
	make_run(&run, 7, 3, 5);
	add(&merged, &run, 1e300);
	add(&merged, &run, -1e300);
	for (size_t i = 0; i < merged.profile.n_samples; i++) {
		const int64_t sum_ns = merged.profile.samples[i].wall_ns;
		assert_true(sum_ns == (int64_t)1e18 || sum_ns == (int64_t)-1e18);
	}
	merged_deinit(&merged);
	report_fixture_deinit(&run);
}

// Of several processes with one pid each keeps its own threads, of one run as of the other.
static void test_reused_pids(void **state)
{
	struct report_fixture runs[2];
	struct merged merged = {0};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct profile *profile = &runs[i].profile;
		make_run(&runs[i], 7, 1, 1);
		profile_begin_process(profile, 51, i ? "third" : "first", profile->start_ns);
		profile_add_thread(profile, 51, 51, "t", profile->start_ns + TICK_NS);
		profile_begin_process(profile, 51, i ? "fourth" : "second",
		                      profile->start_ns + 2 * TICK_NS);
		profile_add_thread(profile, 51, 51, "t", profile->start_ns + 2 * TICK_NS);
		add(&merged, &runs[i], 1);
	}
	const struct profile *profile = &merged.profile;
	const char *const names[] = {"", "first", "second", "", "third", "fourth"};
	assert_int_equal(profile->n_threads, 6);
	for (size_t i = 0; i < 6; i++)
		if (profile->threads[i].pid == 51)
			assert_string_equal(profile_process_of(profile, &profile->threads[i]),
			                    names[i]);
	assert_int_equal(profile->threads[4].pid, 51);
	merged_deinit(&merged);
	for (int i = 0; i < 2; i++)
		report_fixture_deinit(&runs[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_same_comes_together),
	    cmocka_unit_test(test_sums_are_weighed),
	    cmocka_unit_test(test_sums_are_bounded),
	    cmocka_unit_test(test_reused_pids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
