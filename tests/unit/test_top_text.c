// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "memory.h"
#include "top_text.h"

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

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_widths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
