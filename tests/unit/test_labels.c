// SPDX-License-Identifier: MIT
// labels: what does not fit into a set, or into a profile's sets, is told.
#include "unit.h"
#include <stdlib.h>
#include <string.h>

#include "labels.h"
#include "memory.h"
#include "profile.h"

enum { MAX_SETS = 1 << 16, N_SETS = MAX_SETS + 10, MAX_TEXT_BYTES = 4096 };

static void test_long_set(void **state)
{
	_cleanup_free_ char *text = NULL;

	(void)state;
	for (size_t i = 0; i < MAX_TEXT_BYTES && !labels_lack(text); i++) {
		_cleanup_free_ char *key = memory_printf("key%zu", i);
		labels_add(&text, key, "0123456789");
	}
	assert_true(labels_lack(text));
	const size_t length = strlen(text);
	assert_in_range(length, MAX_TEXT_BYTES, MAX_TEXT_BYTES + 64);
	labels_add(&text, "more", "of them");
	assert_int_equal(strlen(text), length);
}

static void test_alike_keys(void **state)
{
	_cleanup_free_ char *text = NULL;

	(void)state;
	labels_add(&text, "a\tb", "1");
	labels_add(&text, "a_b", "2");
	labels_add(&text, "", "3");
	labels_add(&text, "c", "4");
	assert_string_equal(text, "a_b\t1\n" LABELS_LACK "\talike or empty keys\nc\t4\n");
}

static void test_find(void **state)
{
	_cleanup_free_ char *text = NULL, *found = NULL;

	(void)state;
	labels_add(&text, "request", "r-1");
	labels_add(&text, "re", "");
	labels_add(&text, "r-1", "request");
	found = labels_find(text, "r-1");
	assert_string_equal(found, "request");
	free(found);
	found = labels_find(text, "re");
	assert_string_equal(found, "");
	assert_null(labels_find(text, "req"));
	assert_null(labels_find("", "r"));
	assert_null(labels_find(NULL, "r"));
}

static void test_many_sets(void **state)
{
	struct profile profile = {0};
	size_t n_lacking = 0;

	(void)state;

	for (size_t i = 0; i < N_SETS; i++) {
		_cleanup_free_ char *text = memory_printf("number\t%zu\n", i);
		const uint32_t id = profile_intern_labels(&profile, text);
		if (labels_lack(profile.labels[id]))
			n_lacking++;
		else
			assert_string_equal(profile.labels[id], text);
	}
	// The first set is the empty one.
	assert_int_equal(n_lacking, N_SETS - (MAX_SETS - 1));
	assert_int_equal(profile_intern_labels(&profile, "number\t0\n"), 1);
	assert_int_equal(profile_intern_labels(&profile, ""), LABELS_NONE);
	profile_deinit(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_long_set),
	    cmocka_unit_test(test_alike_keys),
	    cmocka_unit_test(test_find),
	    cmocka_unit_test(test_many_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
