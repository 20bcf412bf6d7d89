// SPDX-License-Identifier: MIT
// top_model: samples count as the kernel's clocks say, where those are known.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu_waits.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "symbolize.h"
#include "top_model.h"
#include "top_own.h"
#include "weights.h"

enum { MS = 1000000, N_STACKS = 20 };

// One thread, seen on a CPU in 40 samples, and ready in 40, twice in each of 20 stacks.
static struct top_share find_share(const struct weights *weights)
{
	struct profile profile = {.period_ns = 10 * MS};
	struct modules modules = {0};
	struct symbols symbols = {0};
	struct top_own own = {0};
	struct top_model model;
	struct span spans[4 * N_STACKS];
	const struct cpu_log no_log = {0};
	int64_t now_ns = 10 * MS;
	size_t n = 0;

	const uint32_t thread = profile_add_thread(&profile, 7, 7, "t", now_ns);
	for (; n < array_size(spans); n++) {
		const uint32_t stack =
		    profile_intern_stack(&profile, NULL, 0, STACK_NO_RULE, (uint8_t)(n % N_STACKS));
		const enum thread_state state = n % 2 ? THREAD_RUNNING : THREAD_RUNNABLE;
		const int64_t start_ns = now_ns;
		now_ns += 10 * MS;
		spans[n] = (struct span){
		    .thread = thread,
		    .sample = profile_count(&profile, thread, stack, state, WAIT_NONE, 1, now_ns),
		    .count = 1,
		    .start_ns = start_ns,
		    .end_ns = now_ns,
		};
	}
	top_own_update(&own, &profile, &modules, &symbols);
	top_model_init(&model, &(struct top_input){.profile = &profile,
	                                           .modules = &modules,
	                                           .symbols = &symbols,
	                                           .spans = spans,
	                                           .n_spans = n,
	                                           .weights = weights,
	                                           .to_ns = INT64_MAX,
	                                           .cpu_log = &no_log,
	                                           .own = &own});
	const struct top_share ret = model.share;
	assert_int_equal(model.threads[0].share.count, ret.count);
	top_model_deinit(&model);
	top_own_deinit(&own);
	profile_deinit(&profile);
	return ret;
}

static void test_weights(void **state)
{
	// A quarter of what ticks saw as on a CPU was so.
	const struct weights weights = {.factor = {0.25, 1.75, 1}};

	(void)state;
	struct top_share share = find_share(NULL);
	assert_int_equal(share.kinds[WAIT_KIND_RUNNING], 40);
	assert_int_equal(share.kinds[WAIT_KIND_RUNNABLE], 40);
	share = find_share(&weights);
	assert_in_range(share.kinds[WAIT_KIND_RUNNING], 9, 11);
	assert_in_range(share.kinds[WAIT_KIND_RUNNABLE], 69, 71);
	assert_in_range(share.count, 79, 81);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
