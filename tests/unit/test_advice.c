// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "advice.h"
#include "memory.h"
#include "report_fixture.h"

enum { ANONYMOUS, PROGRAM, LIBRARY, UNKNOWN }; // the fixture's modules

// Seven samples of a stack, leaf first: 'n' is a frame with a name, '.' one in the module without.
static void add_samples(struct report_fixture *f, enum thread_state state, const char *frames,
                        uint32_t module)
{
	const uint32_t thread = report_fixture_thread(f, 100 + state, "main");
	uint32_t ids[16];

	for (size_t i = 0; frames[i]; i++)
		ids[i] = frames[i] == 'n' ? report_fixture_frame(f, "named")
		                          : report_fixture_location(f, module, 0x100 + i, NULL, 0);
	report_fixture_sample(f, thread, state, ids, strlen(frames), STACK_COMPLETE, 7);
}

static void assert_advice(const struct report_fixture *f, bool asked, const char *expected)
{
	_cleanup_free_ char *advice = advice_on_names(&f->profile, &f->modules, &f->symbols, asked);

	if (!expected) {
		assert_null(advice);
		return;
	}
	assert_non_null(advice);
	assert_string_equal(advice, expected);
}

static void test_most_have_names(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	assert_advice(&f, false, NULL); // no samples
	add_samples(&f, THREAD_RUNNING, "nn..", PROGRAM);
	add_samples(&f, THREAD_RUNNING, "....", PROGRAM);
	assert_advice(&f, false, NULL);
	add_samples(&f, THREAD_RUNNING, ".nnn", PROGRAM);
	assert_advice(&f, false,
	              "names are lacking in 66 % of the samples, mostly of prog: its debug file "
	              "names them, in a --debug-dir or got with --debuginfod");
	report_fixture_deinit(&f);
}

// Where some run, those that sleep do not count.
static void test_sleepers(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	add_samples(&f, THREAD_SLEEPING, "..", PROGRAM);
	assert_advice(&f, true,
	              "names are lacking in 100 % of the samples, mostly of prog: the servers have "
	              "no debug file for it; one in a --debug-dir names them");
	add_samples(&f, THREAD_RUNNABLE, "nn", PROGRAM); // it runs when it has a CPU
	assert_advice(&f, true, NULL);
	add_samples(&f, THREAD_RUNNING, "nn", PROGRAM);
	assert_advice(&f, true, NULL);
	report_fixture_deinit(&f);
}

static void test_stripped(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	add_samples(&f, THREAD_RUNNING, "n....", PROGRAM);
	assert_advice(&f, false,
	              "names are lacking in 100 % of the samples, mostly of prog: its debug file "
	              "names them, in a --debug-dir or got with --debuginfod");
	assert_advice(
	    &f, true,
	    "names are lacking in 100 % of the samples, mostly of prog: the servers have no "
	    "debug file for it; one in a --debug-dir names them");
	f.modules.items[PROGRAM]->build_id_size = 0; // for which servers can be asked
	assert_advice(
	    &f, false,
	    "names are lacking in 100 % of the samples, mostly of prog: its debug file, in a "
	    "--debug-dir, names them");
	report_fixture_deinit(&f);
}

static void test_nowhere(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	add_samples(&f, THREAD_RUNNING, "n....", UNKNOWN);
	assert_advice(&f, false, NULL);
	report_fixture_deinit(&f);
}

static void test_compiled(void **state)
{
	static const char *const recipes[][2] = {
	    {"/usr/bin/prog", "/tmp/perf-PID.map"},
	    {"/usr/bin/node", "node --perf-basic-prof"},
	    {"/usr/lib/libnode.so.108", "node --perf-basic-prof"},
	    {"/usr/lib/jvm/lib/server/libjvm.so", "jcmd PID Compiler.perfmap"},
	    {"/usr/bin/php8.2", "php -d opcache.jit_debug=16"},
	    {"/usr/sbin/php-fpm8.2", "opcache.jit_debug=16 in php.ini"},
	    {"/usr/lib/erlang/erts-13.1.5/bin/beam.smp", "erl +JPperf true"},
	    {"/usr/bin/deno", "deno run --v8-flags=--perf-basic-prof"},
	    {"/usr/lib/chromium/chromium", "chromium --js-flags=--perf-basic-prof"},
	    {"/usr/bin/nodeish", "/tmp/perf-PID.map"},
	    {"/usr/bin/pypy3.9", "of CPython, not of PyPy"},
	    {"/usr/lib/libpypy3.11-c.so", "of CPython, not of PyPy"},
	};

	(void)state;
	for (size_t i = 0; i < array_size(recipes); i++) {
		struct report_fixture f;
		report_fixture_init(&f);
		module_rename(f.modules.items[PROGRAM], recipes[i][0]);
		add_samples(&f, THREAD_RUNNING, "n..", ANONYMOUS);
		_cleanup_free_ char *advice =
		    advice_on_names(&f.profile, &f.modules, &f.symbols, false);
		assert_non_null(advice);
		assert_non_null(strstr(
		    advice, "names are lacking in 100 % of the samples, mostly of code that "));
		assert_true((strstr(advice, "that is in no file: ") != NULL) !=
		            (strstr(advice, "that was compiled as the program ran: ") != NULL));
		assert_non_null(strstr(advice, recipes[i][1]));
		report_fixture_deinit(&f);
	}
}

static void test_windows(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	module_rename(f.modules.items[PROGRAM], "/usr/lib/wine/KernelBase.DLL");
	add_samples(&f, THREAD_RUNNING, ".", PROGRAM);
	assert_advice(
	    &f, false,
	    "names are lacking in 100 % of the samples, mostly of KernelBase.DLL: Windows "
	    "programs (wine, .NET) have their names and unwinding rules in a form that is "
	    "not read");
	report_fixture_deinit(&f);
}

static void test_goroutines(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	assert_null(advice_on_goroutines(&f.modules));
	module_rename(f.modules.items[LIBRARY], "/usr/lib/libgobject-2.0.so.0");
	assert_null(advice_on_goroutines(&f.modules));
	module_rename(f.modules.items[LIBRARY], "/usr/lib/x86_64-linux-gnu/libgo.so.21.0.0");
	assert_non_null(strstr(advice_on_goroutines(&f.modules), "not of gccgo's"));
	report_fixture_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_most_have_names), cmocka_unit_test(test_sleepers),
	    cmocka_unit_test(test_stripped),        cmocka_unit_test(test_nowhere),
	    cmocka_unit_test(test_compiled),        cmocka_unit_test(test_windows),
	    cmocka_unit_test(test_goroutines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
