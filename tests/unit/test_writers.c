// SPDX-License-Identifier: MIT
#include <string.h>

#include "memory.h"
#include "report_fixture.h"
#include "unit.h"

static void test_writer_by_name(void **state)
{
	(void)state;
	assert_ptr_equal(writer_by_name("folded"), &writer_folded);
	assert_ptr_equal(writer_by_name("pprof"), &writer_pprof);
	assert_ptr_equal(writer_by_name("record"), &writer_record);
	assert_null(writer_by_name("Folded"));
	assert_null(writer_by_name(""));
}

static void test_writer_by_file_name(void **state)
{
	static const char *const pprofs[] = {"a.pb.gz", "dir/a.pb", "a.b.pprof"};
	static const char *const others[] = {"a.gz",         "pb", "a.pb/b", "a.PB",
	                                     "a.pb.gz.text", "-",  ""};

	(void)state;
	for (size_t i = 0; i < array_size(pprofs); i++)
		assert_ptr_equal(writer_by_file_name(pprofs[i]), &writer_pprof);
	for (size_t i = 0; i < array_size(others); i++)
		assert_null(writer_by_file_name(others[i]));
	assert_ptr_equal(writer_by_file_name("x.folded"), &writer_folded);
	assert_ptr_equal(writer_by_file_name("x.wprof"), &writer_record);
	assert_ptr_equal(writer_by_file_name("x.html"), &writer_html);
	assert_ptr_equal(writer_by_file_name(writer_folded.default_suffix), &writer_folded);
	assert_ptr_equal(writer_by_file_name(writer_pprof.default_suffix), &writer_pprof);
}

static void assert_folded(const struct report_fixture *fixture, const char *expected)
{
	size_t size;
	_cleanup_free_ char *text = report_fixture_write(fixture, &writer_folded, &size);

	assert_string_equal(text, expected);
}

static void test_folded_empty(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	assert_folded(&f, "");
	report_fixture_deinit(&f);
}

static void test_folded(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	report_fixture_fill(&f);
	assert_folded(&f, "[truncated: no unwinding rule];[anon+0x10008] 1\n"
	                  "[truncated: stack not available] 9\n"
	                  "[truncated: unreadable memory];[unknown+0xdead] 1\n"
	                  "main;main;ns::in(int)_[i];[libc.so.6+0x27123] 7\n");
	report_fixture_deinit(&f);
}

static void test_folded_selection(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	report_fixture_fill(&f);
	report_fixture_select(&f, &(struct selection){.states = ~(1u << THREAD_RUNNING)});
	assert_folded(&f, "[truncated: stack not available] 9\n"
	                  "[truncated: unreadable memory];[unknown+0xdead] 1\n"
	                  "main;main;ns::in(int)_[i];[libc.so.6+0x27123] 4\n");
	report_fixture_deinit(&f);
}

static void test_folded_lines(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	report_fixture_fill(&f);
	report_fixture_select(&f, &(struct selection){.states = 1u << THREAD_RUNNING});
	f.report.lines = true;
	assert_folded(&f, "[truncated: no unwinding rule];[anon+0x10008] 1\n"
	                  "main (prog.c:10);main (prog.c:12);ns::in(int) (in.h:3)_[i];"
	                  "[libc.so.6+0x27123] 3\n");
	report_fixture_deinit(&f);
}

static void test_folded_thread_roots(void **state)
{
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	report_fixture_fill(&f);
	f.report.thread_roots = true;
	assert_folded(&f,
	              "bad_thread:\xef\xbf\xbd_;[truncated: stack not available] 9\n"
	              "bad_thread:\xef\xbf\xbd_;[truncated: unreadable memory];"
	              "[unknown+0xdead] 1\n"
	              "bad_thread:\xef\xbf\xbd_;main;main;ns::in(int)_[i];[libc.so.6+0x27123] 4\n"
	              "prog;[truncated: no unwinding rule];[anon+0x10008] 1\n"
	              "prog;main;main;ns::in(int)_[i];[libc.so.6+0x27123] 3\n");
	report_fixture_deinit(&f);
}

static void test_folded_names_are_safe(void **state)
{
	static const struct {
		const char *name, *written;
	} cases[] = {
	    {"a;b", "a:b"},
	    {"tab\tnewline\n", "tab_newline_"},
	    {"bad\xff", "bad\xef\xbf\xbd"},
	    {"leaf 12", "leaf_12"}, // no second count
	    {"leaf 1.5", "leaf_1.5"},
	    {"leaf 1 2", "leaf 1_2"},
	    {"v1.5", "v1.5"},
	    {"12", "12"},
	    {"leaf .5", "leaf .5"},
	    {"operator new(unsigned long)", "operator new(unsigned long)"},
	    {"", "[unknown]"},
	};
	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		struct report_fixture f;
		report_fixture_init(&f);
		const uint32_t thread = report_fixture_thread(&f, 1, "# a 1");
		const uint32_t leaf = report_fixture_frame(&f, cases[i].name);
		report_fixture_sample(&f, thread, THREAD_RUNNING, &leaf, 1, STACK_COMPLETE, 5);
		_cleanup_free_ char *expected = memory_printf("%s 5\n", cases[i].written);
		assert_folded(&f, expected);
		f.report.thread_roots = true;
		_cleanup_free_ char *with_root = memory_printf("__a_1;%s 5\n", cases[i].written);
		assert_folded(&f, with_root);
		report_fixture_deinit(&f);
	}
}

// Stacks that differ only in what sanitising takes away are one line; the order is that of
// LC_ALL=C sort over whole lines, counts and all.
static void test_folded_merges_and_sorts(void **state)
{
	static const struct {
		const char *root, *leaf;
		uint64_t count;
	} samples[] = {
	    {"r", "f const", 1}, {"r", "f", 5},   {"r", "f", 20},
	    {"r", "f (a.c)", 1}, {"r", "x;y", 1}, {"r", "x:y", 2},
	    {"r a", "b", 1},     {"r", NULL, 7},  {"r", "\xc3\xa9", 1},
	};
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	const uint32_t thread = report_fixture_thread(&f, 1, "t");
	for (size_t i = 0; i < array_size(samples); i++) {
		const uint32_t root = report_fixture_frame(&f, samples[i].root);
		const uint32_t leaf =
		    samples[i].leaf ? report_fixture_frame(&f, samples[i].leaf) : root;
		const uint32_t ids[] = {leaf, root};
		report_fixture_sample(&f, thread, THREAD_RUNNING, ids, samples[i].leaf ? 2 : 1,
		                      STACK_COMPLETE, samples[i].count);
	}
	assert_folded(&f, "r 7\n"
	                  "r a;b 1\n"
	                  "r;f (a.c) 1\n"
	                  "r;f 25\n"
	                  "r;f const 1\n"
	                  "r;x:y 3\n"
	                  "r;\xc3\xa9 1\n");
	report_fixture_deinit(&f);
}

// The errors of the stream are left in it, and end the writing.
static void test_write_errors_stay_in_the_stream(void **state)
{
	static const struct writer *const writers[] = {&writer_folded, &writer_pprof};
	struct report_fixture f;

	(void)state;
	report_fixture_init(&f);
	report_fixture_fill(&f);
	for (size_t i = 0; i < array_size(writers); i++) {
		_cleanup_fclose_ FILE *full = fopen("/dev/full", "we");
		assert_non_null(full);
		setvbuf(full, NULL, _IONBF, 0);
		assert_null(writers[i]->write(&f.report, full));
		assert_true(ferror(full));
	}
	report_fixture_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_writer_by_name),
	    cmocka_unit_test(test_writer_by_file_name),
	    cmocka_unit_test(test_folded_empty),
	    cmocka_unit_test(test_folded),
	    cmocka_unit_test(test_folded_selection),
	    cmocka_unit_test(test_folded_lines),
	    cmocka_unit_test(test_folded_thread_roots),
	    cmocka_unit_test(test_folded_names_are_safe),
	    cmocka_unit_test(test_folded_merges_and_sorts),
	    cmocka_unit_test(test_write_errors_stay_in_the_stream),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
