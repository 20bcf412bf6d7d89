// SPDX-License-Identifier: MIT
// top_model: samples count as the kernel's clocks say, where those are known; where a thread is.
#include <stdlib.h>
#include <string.h>

#include "cpu_waits.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "report_fixture.h"
#include "symbolize.h"
#include "syscall_numbers.h"
#include "top_model.h"
#include "top_own.h"
#include "unit.h"
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

// Where a goroutine waits whose functions, leaf first, have that source.
static char *where(const char *functions, const char *file)
{
	struct report_fixture f;
	struct top_own own = {0};
	uint32_t ids[16];
	size_t n = 0;
	char *save = NULL;
	_cleanup_free_ char *text = memory_strdup(functions);

	report_fixture_init(&f);
	for (char *name = strtok_r(text, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
		const struct fixture_line line = {report_fixture_function(&f, name, name, file), 7};
		ids[n] = report_fixture_location(&f, 1, 0x10 * n, &line, 1);
		n++;
	}
	const uint32_t thread = report_fixture_thread(&f, 1, "t");
	report_fixture_sample(&f, thread, THREAD_SLEEPING, ids, n, STACK_COMPLETE, 1);
	top_own_update(&own, &f.profile, &f.modules, &f.symbols);
	const struct top_model model = {
	    .input = {
	        .profile = &f.profile, .modules = &f.modules, .symbols = &f.symbols, .own = &own}};
	char *ret = top_where(&model, 0);
	top_own_deinit(&own);
	report_fixture_deinit(&f);
	return ret;
}

// In a table a goroutine stands where it has called the runtime, not within that.
static void test_where(void **state)
{
	static const struct {
		const char *functions, *expected;
	} rows[] = {
	    {"runtime.gopark internal/poll.(*FD).Read net.(*netFD).Read net.(*conn).Read "
	     "net/http.(*persistConn).readLoop runtime.goexit",
	     "net.(*netFD).Read (x.go:7)"},
	    {"runtime.gopark runtime.selectgo net/http.(*persistConn).writeLoop runtime.goexit",
	     "net/http.(*persistConn).writeLoop (x.go:7)"},
	    {"runtime.gopark net.(*conn).Read main.load main.main runtime.main runtime.goexit",
	     "main.load (x.go:7)"},
	    {"runtime.futex runtime.stopm runtime.mcall", "runtime.futex (x.go:7)"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_free_ char *place = where(rows[i].functions, "/src/x.go");
		assert_string_equal(place, rows[i].expected);
	}
}

// Two threads that wait for the same server, and one for another, are two rows. So are two tasks
// that wait for several channels, whichever these are, and one that waits for a channel.
static void test_connections(void **state)
{
	static const char *const descriptors[] = {
	    "tcp 10.0.0.1:40000 -> 10.0.0.7:5432: \"db\" 7",
	    "tcp 10.0.0.1:40001 -> 10.0.0.7:5432: \"db\" 8",
	    "tcp 10.0.0.1:40002 -> 10.0.0.7:6379",
	    "chan 0xc001 +3",
	    "chan 0xc002 +3",
	    "chan 0xc003 +3",
	    "chan 0xc004",
	};
	static const struct {
		uint64_t count; // of samples, and threads
		const char *thing;
	} rows[] = {
	    {2, "recvfrom(tcp -> 10.0.0.7:5432)"},
	    {2, "select"},
	    {1, "recvfrom(tcp 10.0.0.1:40002 -> 10.0.0.7:6379)"},
	    {1, "select chan 0xc004"},
	};
	static const struct cpu_log no_log;
	struct report_fixture f;
	struct top_own own = {0};
	struct top_model model;
	struct span spans[array_size(descriptors)];

	(void)state;
	report_fixture_init(&f);
	const uint32_t busy = report_fixture_frame(&f, "net/http.(*persistConn).roundTrip");
	const uint32_t idle = report_fixture_frame(&f, "main.worker");
	for (uint32_t i = 0; i < array_size(descriptors); i++) {
		const uint32_t thread = report_fixture_thread(&f, (int)i + 1, "t");
		const uint32_t wait =
		    descriptors[i][0] == 't'
		        ? profile_intern_wait(&f.profile, SYS_recvfrom, descriptors[i], "")
		        : profile_intern_reason(&f.profile, "select", descriptors[i]);
		report_fixture_wait(&f, thread, THREAD_SLEEPING,
		                    strstr(descriptors[i], "c003") ? &idle : &busy, 1,
		                    STACK_COMPLETE, wait, 1);
		spans[i] = (struct span){
		    .thread = thread, .sample = i, .count = 1, .start_ns = 1, .end_ns = 10 * MS};
	}
	top_own_update(&own, &f.profile, &f.modules, &f.symbols);
	top_model_init(&model, &(struct top_input){.profile = &f.profile,
	                                           .modules = &f.modules,
	                                           .symbols = &f.symbols,
	                                           .spans = spans,
	                                           .n_spans = array_size(spans),
	                                           .to_ns = INT64_MAX,
	                                           .cpu_log = &no_log,
	                                           .choice = {.hides_idle = true},
	                                           .own = &own});
	assert_int_equal(model.n_waits, array_size(rows));
	for (size_t i = 0; i < array_size(rows); i++) {
		_cleanup_free_ char *thing = top_wait_thing(&model, &model.waits[i]);
		assert_int_equal(model.waits[i].count, rows[i].count);
		assert_int_equal(model.waits[i].n_threads, rows[i].count);
		assert_string_equal(thing, rows[i].thing);
	}
	top_model_deinit(&model);
	top_own_deinit(&own);
	report_fixture_deinit(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_weights),
	    cmocka_unit_test(test_where),
	    cmocka_unit_test(test_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
