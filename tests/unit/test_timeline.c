// SPDX-License-Identifier: MIT
// timeline: what of each span is kept, and in which order.
#include <stdlib.h>

#include "memory.h"
#include "timeline.h"
#include "unit.h"

// Of a span of four ticks from 100 to 500: the part from `from_ns` to `to_ns`.
static void test_cut(void **state)
{
	static const struct {
		int64_t from_ns, to_ns;
		uint64_t ticks; // 0: nothing is kept
		int64_t start_ns, end_ns;
	} cases[] = {
	    {INT64_MIN, INT64_MAX, 4, 100, 500},
	    {100, 501, 4, 100, 500},
	    {INT64_MIN, 100, 0, 0, 0},
	    {500, INT64_MAX, 0, 0, 0},
	    {150, 301, 2, 150, 301},
	    {250, 600, 3, 250, 500},
	    {0, 450, 3, 100, 450},
	};
	const struct span span = {.count = 4, .start_ns = 100, .end_ns = 500};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		struct timeline timeline;
		timeline_init(&timeline, cases[i].from_ns, cases[i].to_ns);
		timeline_add(&timeline, &span);
		assert_int_equal(timeline.n_spans, cases[i].ticks > 0);
		if (cases[i].ticks > 0) {
			assert_int_equal(timeline.spans[0].count, cases[i].ticks);
			assert_int_equal(timeline.spans[0].start_ns, cases[i].start_ns);
			assert_int_equal(timeline.spans[0].end_ns, cases[i].end_ns);
		}
		timeline_deinit(&timeline);
	}
}

// A span without ticks is no span.
static void test_empty_span(void **state)
{
	const struct span span = {.start_ns = 100, .end_ns = 500};
	struct timeline timeline;

	(void)state;
	timeline_init(&timeline, INT64_MIN, INT64_MAX);
	timeline_add(&timeline, &span);
	assert_int_equal(timeline.n_spans, 0);
	timeline_deinit(&timeline);
}

// Two threads, as the profile tells of them: what each did, and the spans that are open still.
static void test_follows(void **state)
{
	struct profile profile = {.period_ns = 10};
	struct timeline timeline;
	const uint32_t a = profile_add_thread(&profile, 1, 1, "a", 0);
	const uint32_t b = profile_add_thread(&profile, 1, 2, "b", 0);
	size_t n_threads;

	(void)state;
	timeline_init(&timeline, INT64_MIN, INT64_MAX);
	profile_follow(&profile, &timeline.follower);
	profile_count(&profile, b, 0, THREAD_SLEEPING, WAIT_NONE, 1, 10);
	profile_count(&profile, a, 0, THREAD_RUNNING, WAIT_NONE, 1, 10);
	profile_count(&profile, a, 1, THREAD_RUNNING, WAIT_NONE, 2, 30);
	profile_count(&profile, b, 1, THREAD_RUNNING, WAIT_NONE, 2, 30);
	assert_int_equal(timeline.n_spans, 2);
	timeline_add_open(&timeline, &profile);
	assert_int_equal(timeline.n_spans, 4);

	struct thread_spans *threads = timeline_by_thread(&timeline, &n_threads);
	assert_int_equal(n_threads, 2);
	for (size_t i = 0; i < n_threads; i++) {
		const struct thread_spans *thread = &threads[i];
		assert_int_equal(thread->thread, i == 0 ? a : b);
		assert_int_equal(thread->count, 2);
		assert_int_equal(thread->spans[0].start_ns, 0);
		assert_int_equal(thread->spans[0].end_ns, thread->spans[1].start_ns);
		assert_int_equal(thread->spans[1].end_ns, 30);
	}
	free(threads);

	bool selected[4] = {false};
	selected[timeline.spans[0].sample] = true;
	timeline_select(&timeline, selected);
	assert_int_equal(timeline.n_spans, 1);
	timeline_deinit(&timeline);
	profile_deinit(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_empty_span),
	    cmocka_unit_test(test_follows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
