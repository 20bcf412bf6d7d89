// SPDX-License-Identifier: MIT
// frame_names: what a runtime names, by number and by address.
#include <string.h>

#include "frame_names.h"
#include "unit.h"

static void test_names(void **state)
{
	struct frame_names names = {0};
	uint32_t line;

	(void)state;
	const uint32_t f = frame_names_add(&names, "f", "/a.py", 3);
	const uint32_t g = frame_names_add(&names, "f", "/a.py", 7);
	assert_int_not_equal(f, FRAME_NAMES_NONE);
	assert_int_not_equal(f, g);
	assert_int_equal(frame_names_add(&names, "f", "/a.py", 3), f);
	assert_int_not_equal(frame_names_add(&names, "f", "/b.py", 3), f);
	const struct frame_function *found =
	    frame_names_find(&names, frame_names_address(g, 9), &line);
	assert_string_equal(found->name, "f");
	assert_int_equal(found->start_line, 7);
	assert_int_equal(line, 9);
	assert_null(frame_names_find(&names, frame_names_address(FRAME_NAMES_NONE, 9), &line));
	assert_null(frame_names_find(&names, frame_names_address(99, 9), &line));
	frame_names_deinit(&names);
}

// As a recording with a hole has them.
static void test_numbers(void **state)
{
	struct frame_names names = {0};
	uint32_t line;

	(void)state;
	frame_names_set(&names, 5, "five", "", 0);
	frame_names_set(&names, 2, "two", "", 0);
	frame_names_set(&names, 2, "zwei", "", 0);
	frame_names_set(&names, 0, "none", "", 0);
	frame_names_set(&names, UINT64_MAX, "none", "", 0);
	assert_int_equal(names.n_functions, 5);
	assert_string_equal(frame_names_find(&names, frame_names_address(5, 0), &line)->name,
	                    "five");
	assert_string_equal(frame_names_find(&names, frame_names_address(2, 0), &line)->name,
	                    "zwei");
	assert_null(frame_names_find(&names, frame_names_address(3, 0), &line));
	frame_names_deinit(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
