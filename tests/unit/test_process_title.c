// SPDX-License-Identifier: MIT
// Which command lines are titles.
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "process_title.h"
#include "unit.h"

enum { REGION = 256 };

// `text` has n bytes, of which n_arguments were the arguments'.
static void assert_title(const char *text, size_t n, size_t n_arguments, const char *expected)
{
	// Where it ends, nothing may be read.
	_cleanup_free_ char *bytes = memory_alloc(n);
	memcpy(bytes, text, n);
	_cleanup_free_ char *title =
	    process_title_parse(bytes, n, n_arguments,
	                        n_arguments > 0 && n_arguments <= n ? bytes[n_arguments - 1] : 0);

	if (expected)
		assert_string_equal(title, expected);
	else
		assert_null(title);
}

#define ASSERT_TITLE(text, n_arguments, expected)                                                  \
	assert_title(text, sizeof(text) - 1, n_arguments, expected)

static void test_titles(void **state)
{
	(void)state;
	ASSERT_TITLE("nginx: worker process\0\0\0\0HOME=/\0", 25, "nginx: worker process");
	ASSERT_TITLE("postgres: checkpointer  \0\0HOME=/\0", 26, "postgres: checkpointer");
	ASSERT_TITLE("[celeryd: a@b]  MainProcess", 27, "[celeryd: a@b]  MainProcess");
	// Perl's.
	ASSERT_TITLE("shop: worker 1\0       HOME=/\0", 22, "shop: worker 1");
	// It goes on in the environment.
	ASSERT_TITLE("gunicorn: worker [shop]\0HOME=/\0", 12, "gunicorn: worker [shop]");
	ASSERT_TITLE("gunicorn: worker [shop]", 12, "gunicorn: worker [shop]");
}

static void test_command_lines(void **state)
{
	(void)state;
	ASSERT_TITLE("sleep\0"
	             "1000\0HOME=/\0",
	             11, NULL);
	ASSERT_TITLE("sh\0-c\0a b\0", 10, NULL);
	ASSERT_TITLE("sh -c\0a b\0", 10, NULL);
	ASSERT_TITLE("top\0HOME=/a b\0", 4, NULL);
	ASSERT_TITLE("/opt/My Tool/run\0", 17, NULL);
	ASSERT_TITLE("a\0\0\0", 4, NULL);
	ASSERT_TITLE("    \0", 5, NULL);
	ASSERT_TITLE("\0\0\0", 3, NULL);
	ASSERT_TITLE("", 0, NULL);
	ASSERT_TITLE("x", 0, NULL);
}

static void test_hostile(void **state)
{
	char bytes[REGION];

	(void)state;
	ASSERT_TITLE("a \x1b[31m\n\xff\0\0", 10, "a _[31m_\xef\xbf\xbd");
	memset(bytes, ' ', sizeof(bytes));
	assert_title(bytes, sizeof(bytes), sizeof(bytes), NULL);
	memset(bytes + 1, 'a', sizeof(bytes) - 1);
	bytes[0] = 'b';
	bytes[1] = ' ';
	_cleanup_free_ char *title = process_title_parse(bytes, sizeof(bytes), SIZE_MAX, 'a');
	assert_int_equal(strlen(title), 128);
	assert_string_equal(title + 125, "...");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_titles),
	    cmocka_unit_test(test_command_lines),
	    cmocka_unit_test(test_hostile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
