// SPDX-License-Identifier: MIT
// Names of threads that hold locks: kept for a moment, and each thread its own.
#include <limits.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "unit.h"
#include "wait_reasons.h"

static void test_names(void **state)
{
	struct holder_names names = {0};
	char name[PROC_NAME_SIZE] = "";
	const int pid = getpid(), place = pid % N_HOLDER_NAMES;

	(void)state;
	prctl(PR_SET_NAME, "first");
	assert_true(holder_names_read(&names, pid, pid, name));
	assert_string_equal(name, "first");
	prctl(PR_SET_NAME, "second");
	names.items[place].due_ns = INT64_MAX;
	assert_true(holder_names_read(&names, pid, pid, name));
	assert_string_equal(name, "first");
	names.items[place].due_ns = 0;
	assert_true(holder_names_read(&names, pid, pid, name));
	assert_string_equal(name, "second");
	// One that has the same place, but does not exist.
	names.items[place].due_ns = INT64_MAX;
	assert_false(holder_names_read(
	    &names, pid, INT_MAX - INT_MAX % N_HOLDER_NAMES + place - N_HOLDER_NAMES, name));
	assert_true(holder_names_read(&names, pid, pid, name));
	assert_string_equal(name, "second");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
