// SPDX-License-Identifier: MIT
#include <string.h>
#include <sys/syscall.h>

#include "advice.h"
#include "hidden_language.h"
#include "memory.h"
#include "report_fixture.h"
#include "unit.h"

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

// Exactly that line, or none if it is NULL.
static void assert_advice(const struct report_fixture *f, bool asked, const char *expected)
{
	struct advice advice;

	advice_on_names(&f->profile, &f->modules, &f->symbols, asked, &advice);
	assert_int_equal(advice.n_lines, expected != NULL);
	if (expected)
		assert_string_equal(advice.lines[0], expected);
	advice_deinit(&advice);
}

#define SYMBOLS "install its debug symbols, or use --debuginfod"

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
	              "66 % of the samples have no function names, mostly in prog: " SYMBOLS);
	report_fixture_deinit(&f);
}

// Threads without work do not count if others have some.
static void test_idle(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	const uint32_t thread = report_fixture_thread(&f, 99, "idle");
	const uint32_t wait = profile_intern_wait(&f.profile, SYS_epoll_wait, "", "");
	const uint32_t nameless = report_fixture_location(&f, PROGRAM, 0x10, NULL, 0);
	report_fixture_wait(&f, thread, THREAD_SLEEPING, &nameless, 1, STACK_COMPLETE, wait, 100);
	assert_advice(&f, false,
	              "100 % of the samples have no function names, mostly in prog: " SYMBOLS);
	add_samples(&f, THREAD_RUNNABLE, "nn", PROGRAM); // it runs when it has a CPU
	assert_advice(&f, false, NULL);
	add_samples(&f, THREAD_DISK, "..", PROGRAM); // that is no idleness
	add_samples(&f, THREAD_DISK, "..", PROGRAM);
	assert_advice(&f, false,
	              "66 % of the samples have no function names, mostly in prog: " SYMBOLS);
	report_fixture_deinit(&f);
}

static void test_stripped(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	add_samples(&f, THREAD_RUNNING, "n....", PROGRAM);
	assert_advice(&f, false,
	              "100 % of the samples have no function names, mostly in prog: " SYMBOLS);
	assert_advice(&f, true,
	              "100 % of the samples have no function names, mostly in prog: the "
	              "--debuginfod servers do not have its debug symbols");
	f.modules.items[PROGRAM]->build_id_size = 0; // for which servers can be asked
	assert_advice(&f, false,
	              "100 % of the samples have no function names, mostly in prog: give a "
	              "directory with its debug symbols (--debug-dir)");
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

// Samples of a stack whose outermost frame is the program's, with a name, below one in code that
// no file holds.
static void add_compiled(struct report_fixture *f, enum thread_state state, bool is_named)
{
	const uint32_t thread = report_fixture_thread(f, 100 + state, "main");
	const uint32_t function = report_fixture_function(f, "named", "named", "");
	const struct fixture_line line = {.function = function};
	const uint32_t ids[] = {
	    report_fixture_frame(f, "leaf"),
	    report_fixture_location(f, ANONYMOUS, 0x1000, &line, is_named),
	    report_fixture_location(f, PROGRAM, 0x500, &line, 1),
	};

	report_fixture_sample(f, thread, state, ids, 3, STACK_COMPLETE, 7);
}

static void assert_compiled(const char *program, const char *expected)
{
	struct report_fixture f;

	report_fixture_init(&f);
	module_rename(f.modules.items[PROGRAM], program);
	add_compiled(&f, THREAD_RUNNING, false);
	assert_advice(&f, false, expected);
	report_fixture_deinit(&f);
}

static void test_languages(void **state)
{
	static const char *const cases[][2] = {
	    {"/usr/bin/node",
	     "JavaScript functions are not shown: start it with node --perf-basic-prof"},
	    {"/usr/lib/libnode.so.108",
	     "JavaScript functions are not shown: start it with node --perf-basic-prof"},
	    {"/usr/bin/deno", "JavaScript functions are not shown: start it with deno run "
	                      "--v8-flags=--perf-basic-prof"},
	    {"/usr/lib/chromium/chromium", "JavaScript functions are not shown: start it with "
	                                   "chromium --js-flags=--perf-basic-prof"},
	    {"/usr/lib/jvm/lib/server/libjvm.so",
	     "Java methods are not shown: jcmd PID Compiler.perfmap, run meanwhile, names them"},
	    {"/usr/share/dotnet/shared/libcoreclr.so",
	     ".NET methods are not shown: start it with DOTNET_PerfMapEnabled=1 in its "
	     "environment"},
	    {"/usr/lib/erlang/erts-13.1.5/bin/beam.smp",
	     "Erlang functions are not shown: start it with erl +JPperf true"},
	    {"/usr/bin/php8.2",
	     "compiled PHP functions are not shown: opcache.jit_debug=16 in php.ini names them"},
	    {"/usr/bin/ruby3.1", "Ruby functions are not shown: rbspy shows them"},
	    {"/usr/lib/libruby-3.1.so.3.1.2", "Ruby functions are not shown: rbspy shows them"},
	    {"/usr/bin/perl", "Perl functions are not shown: Devel::NYTProf shows them, if the "
	                      "program starts with it"},
	    {"/usr/bin/pypy3.9",
	     "Python functions of PyPy are not shown: only those of CPython are"},
	    {"/usr/bin/nodeish", NULL},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++)
		assert_compiled(cases[i][0], cases[i][1]);
}

// Interpreters hide what they execute, with and without symbols of their own.
static void test_interpreters(void **state)
{
	static const char PHP[] = "PHP functions are not shown: phpspy shows them";
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	module_rename(f.modules.items[PROGRAM], "/usr/sbin/php-fpm8.2");
	add_samples(&f, THREAD_RUNNING, "nnnn", LIBRARY);
	assert_advice(&f, false, NULL); // not in these stacks
	add_samples(&f, THREAD_RUNNING, "nn..", PROGRAM);
	assert_advice(&f, false, PHP);
	add_samples(&f, THREAD_RUNNING, "....", PROGRAM);
	assert_advice(&f, false, PHP);
	report_fixture_deinit(&f);
}

// What threads wait for does not outweigh what they do when they run.
static void test_rare(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	module_rename(f.modules.items[PROGRAM], "/usr/bin/node");
	for (int i = 0; i < 20; i++)
		add_samples(&f, THREAD_DISK, "nnn", LIBRARY);
	assert_advice(&f, false, NULL);
	add_compiled(&f, THREAD_RUNNING, true);
	assert_advice(&f, false, NULL); // a perf map names it
	add_compiled(&f, THREAD_RUNNING, false);
	assert_advice(&f, false,
	              "JavaScript functions are not shown: start it with node --perf-basic-prof");
	report_fixture_deinit(&f);
}

static void test_unknown_compiler(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	add_samples(&f, THREAD_RUNNING, "n..", ANONYMOUS);
	assert_advice(
	    &f, false,
	    "100 % of the samples have no function names, mostly in code that is in no "
	    "file: a runtime can name it in /tmp/perf-PID.map, as for perf; unpack a packed "
	    "program (UPX)");
	report_fixture_deinit(&f);
}

static void test_windows(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	module_rename(f.modules.items[PROGRAM], "/usr/lib/wine/KernelBase.DLL");
	add_samples(&f, THREAD_RUNNING, ".", PROGRAM);
	assert_advice(&f, false,
	              "100 % of the samples have no function names, mostly in KernelBase.DLL: the "
	              "symbols of Windows programs (wine, .NET) cannot be read");
	report_fixture_deinit(&f);
}

static void test_goroutines(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	assert_null(hidden_language_tasks(&f.modules));
	module_rename(f.modules.items[LIBRARY], "/usr/lib/libgobject-2.0.so.0");
	assert_null(hidden_language_tasks(&f.modules));
	module_rename(f.modules.items[LIBRARY], "/usr/lib/x86_64-linux-gnu/libgo.so.21.0.0");
	assert_non_null(strstr(hidden_language_tasks(&f.modules), "built by gccgo"));
	report_fixture_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_most_have_names),
	    cmocka_unit_test(test_idle),
	    cmocka_unit_test(test_stripped),
	    cmocka_unit_test(test_nowhere),
	    cmocka_unit_test(test_languages),
	    cmocka_unit_test(test_interpreters),
	    cmocka_unit_test(test_rare),
	    cmocka_unit_test(test_unknown_compiler),
	    cmocka_unit_test(test_windows),
	    cmocka_unit_test(test_goroutines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
