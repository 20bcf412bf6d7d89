// SPDX-License-Identifier: MIT
// figures_log: what the kernel has counted in a window of time, while sampling goes on.
#include "clock.h"
#include "figures_log.h"
#include "memory.h"
#include "slice.h"
#include "unit.h"
#include "weights.h"

enum { PERIOD_NS = 10 * NS_PER_MS, N_TICKS = 200 };

static struct profile profile;
static struct figures_log figures;
static struct span spans[N_TICKS];

// Ticks find the thread running and waiting for a CPU by turns. The kernel says that it runs for a
// quarter of the time; the last figures are of told_ns.
static void make(int64_t told_ns)
{
	profile = (struct profile){.period_ns = PERIOD_NS};
	figures_log_init(&figures);
	profile_follow(&profile, &figures.follower);
	const uint32_t thread = profile_add_thread(&profile, 7, 7, "t", 0);
	const uint32_t stack = profile_intern_stack(&profile, NULL, 0, STACK_COMPLETE, 0);
	for (int i = 0; i < N_TICKS; i++) {
		const int64_t start_ns = (int64_t)i * PERIOD_NS, end_ns = start_ns + PERIOD_NS;
		const enum thread_state state = i % 2 ? THREAD_RUNNING : THREAD_RUNNABLE;
		const uint32_t sample =
		    profile_count(&profile, thread, stack, state, WAIT_NONE, 1, end_ns);
		spans[i] = (struct span){thread, sample, 1, start_ns, end_ns};
		if (end_ns <= told_ns && (i % 25 == 0 || end_ns == told_ns))
			profile_take_figures(&profile, thread,
			                     &(struct thread_figures){.at_ns = end_ns,
			                                              .cpu_ns = end_ns / 4,
			                                              .delay_ns = end_ns / 4 * 3});
	}
}

static void find(int64_t from_ns, int64_t to_ns, struct figures_range *ret_range,
                 double *ret_running)
{
	struct slice slice;

	slice_init(&slice, from_ns, to_ns);
	for (int i = 0; i < N_TICKS; i++)
		slice_add(&slice, &profile, &spans[i]);
	figures_log_fill(&figures, &profile, spans, N_TICKS, &slice);
	*ret_range = slice.n_figures ? slice.figures[0] : (struct figures_range){0};
	const struct profile view = slice_view(&slice, &profile);
	_cleanup_free_ struct weights *weights = weights_of_profile(&view);
	*ret_running = weights[0].factor[WEIGHT_RUNNING];
	slice_deinit(&slice);
}

static int end(void **state)
{
	(void)state;
	figures_log_deinit(&figures);
	profile_deinit(&profile);
	return 0;
}

// In the middle all is told: samples of running count half, as the kernel says.
static void test_window(void **state)
{
	struct figures_range range;
	double running;

	(void)state;
	make(2000 * NS_PER_MS);
	find(500 * NS_PER_MS, 1500 * NS_PER_MS, &range, &running);
	assert_int_equal(range.from.at_ns, 500 * NS_PER_MS);
	assert_int_equal(range.to.at_ns, 1500 * NS_PER_MS);
	assert_in_range(range.to.cpu_ns - range.from.cpu_ns, 249 * NS_PER_MS, 251 * NS_PER_MS);
	assert_in_range((int64_t)(1000 * running), 499, 501);
}

// Samples stand for what the kernel has counted since.
static void test_not_told_yet(void **state)
{
	struct figures_range range;
	double running;

	(void)state;
	make(1800 * NS_PER_MS);
	find(1000 * NS_PER_MS, 2000 * NS_PER_MS, &range, &running);
	assert_int_equal(range.to.at_ns, 2000 * NS_PER_MS);
	assert_in_range(range.to.cpu_ns - range.from.cpu_ns, 299 * NS_PER_MS, 301 * NS_PER_MS);
	assert_in_range(range.to.delay_ns - range.from.delay_ns, 699 * NS_PER_MS, 701 * NS_PER_MS);
	assert_in_range((int64_t)(1000 * running), 599, 601);
}

// A window of which nothing is told yet stays as sampled.
static void test_nothing_told(void **state)
{
	struct figures_range range;
	double running;

	(void)state;
	make(800 * NS_PER_MS);
	find(1000 * NS_PER_MS, 2000 * NS_PER_MS, &range, &running);
	assert_int_equal(range.from.at_ns, 1000 * NS_PER_MS);
	assert_in_range((int64_t)(1000 * running), 999, 1001);
	figures_log_forget(&figures, 900 * NS_PER_MS);
	assert_int_equal(figures.count, 0);
	find(0, 1000 * NS_PER_MS, &range, &running);
	assert_int_equal(range.from.at_ns, 0);
	assert_in_range((int64_t)(1000 * running), 1000, 1000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_window, end),
	    cmocka_unit_test_teardown(test_not_told_yet, end),
	    cmocka_unit_test_teardown(test_nothing_told, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
