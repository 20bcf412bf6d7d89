// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "memory.h"
#include "top_layout.h"
#include "top_table.h"
#include "top_text.h"
#include "unit.h"

// Wide characters take two columns, and those that combine none, though the locale here is C.
static void test_widths(void **state)
{
	static const struct {
		const char *text, *fitted;
	} cases[] = {
	    {"abcdef", "abcd"},
	    {"ab", "ab  "},
	    {"\u65e5\u672c\u8a9e", "\u65e5\u672c"},
	    {"a\u65e5\u672c", "a\u65e5 "},
	    {"\u00e9t\u00e9", "\u00e9t\u00e9 "},
	    {"\U0001f600x", "\U0001f600x "},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		_cleanup_free_ char *fitted = top_text_fit(cases[i].text, 4, false);
		assert_string_equal(fitted, cases[i].fitted);
	}
}

// Both ends of a name tell it from others.
static void test_cut(void **state)
{
	static const struct {
		const char *text, *cut;
		int width;
	} cases[] = {
	    {"abc", "abc  ", 5},
	    {"abcdef", "abcdef", 6},
	    {"ThreadPoolExecutor-0_3", "ThreadPool\u2026-0_3", 15},
	    {"handle_one_request (server.py:410)", "handle_one_req\u2026(server.py:410)", 30},
	    {"handle_one_request (a_file_of_a_long_name.py)", "handle_one_request    ", 22},
	    {"\"Thread-3 (process_request)\" 6186", "\"Thread-3 (proce\u2026)\" 6186", 24},
	    {"    + some_function", "    + some_f\u2026ion", 16},
	    {"                   + some_function", "        \u2026ion", 12},
	    {"\u65e5\u672c\u8a9e\u65e5\u672c\u8a9e", "\u65e5\u672c\u8a9e\u2026\u8a9e", 9},
	    {"\u65e5\u672c\u8a9e\u65e5\u672c\u8a9e", "\u65e5\u672c \u2026\u8a9e", 8},
	    {"abc", "ab", 2},
	    {"abc", "", 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		_cleanup_free_ char *cut = top_text_cut(cases[i].text, cases[i].width);
		assert_string_equal(cut, cases[i].cut);
	}
}

// A column of text that needs less than its share leaves the rest to the others.
static void test_layout(void **state)
{
	static const struct top_column columns[] = {
	    {"FOR", 5, TOP_TEXT, 0, false},
	    {"HELD BY", 4, TOP_TEXT, 0, false},
	    {"WHERE", 5, TOP_TEXT, 0, false},
	};
	struct top_row row = {.cells = {"read", "", "a_function_with_a_long_name (file.c:12)"}};
	struct top_table table = {.columns = columns,
	                          .n_columns = (int)array_size(columns),
	                          .rows = &row,
	                          .n_rows = 1,
	                          .n_shown = 1};

	(void)state;
	top_layout(&table, 60);
	assert_int_equal(table.widths[0], 4);
	assert_int_equal(table.widths[1], 7);
	assert_int_equal(table.widths[2], 39);
	row.cells[0] = "read(tcp 127.0.0.1:40000 -> 10.0.0.7:5432)";
	top_layout(&table, 60);
	assert_int_equal(table.widths[0] + table.widths[2], 60 - 7 - 2);
	assert_in_range(table.widths[0], 25, 26);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_widths),
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
