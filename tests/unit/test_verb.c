// SPDX-License-Identifier: MIT
// verb: the help of each.
#include <string.h>

#include "memory.h"
#include "options.h"
#include "unit.h"
#include "verb.h"

// The help's rows of options; each row is at most 80 columns wide.
static size_t count_options(const char *help)
{
	_cleanup_free_ char *copy = memory_strdup(help);
	char *rest = copy;
	size_t n = 0;

	for (char *row = strsep(&rest, "\n"); row; row = strsep(&rest, "\n")) {
		assert_true(strlen(row) <= 80);
		n += strncmp(row, "  ", 2) == 0 && strncmp(row + 4, ", --", 4) == 0;
		n += strncmp(row, "      --", 8) == 0;
	}
	return n;
}

static void test_help_text(void **state)
{
	_cleanup_free_ char *help =
	    options_help(&(struct options){.verb = &verbs[VERB_SAMPLE], .help_all = true});

	(void)state;
	assert_non_null(strstr(help, "Usage: profiler [record] [OPTION...] -p PID\n"));
	assert_non_null(strstr(help, "\n  -p, --pid=PID           attach to"));
	assert_non_null(strstr(help, "\n      --no-inlines        show only"));
	assert_null(strstr(help, "--normalize")); // diff's
	assert_true(count_options(help) >= 44);
	for (size_t i = 0; i < N_VERBS; i++) {
		_cleanup_free_ char *own =
		    options_help(&(struct options){.verb = &verbs[i], .help_all = true});
		assert_true(count_options(own) >= 10);
		if (!verbs[i].name)
			continue;
		_cleanup_free_ char *row =
		    memory_printf("\n  %s %s ", verbs[i].name, verbs[i].operands);
		assert_non_null(strstr(help, row));
		assert_true(strstr(help, row) < strstr(help, "\nWhat and how long:"));
		_cleanup_free_ char *usage = memory_printf("Usage: profiler %s ", verbs[i].name);
		assert_ptr_equal(strstr(own, usage), own);
		assert_null(strstr(own, "--ring-size"));
	}
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

// --help fits a screen, and says where the rest is.
static void test_short_help(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_VERBS; i++) {
		_cleanup_free_ char *help = options_help(&(struct options){.verb = &verbs[i]});
		const size_t n = count_options(help);

		assert_true(n >= 3 && n <= 16);
		assert_true(count_lines(help) <= 44);
		assert_non_null(strstr(help, "\nExamples:\n  profiler "));
		assert_non_null(strstr(help, " --help-all"));
	}
	_cleanup_free_ char *help = options_help(&(struct options){.verb = &verbs[VERB_SAMPLE]});
	assert_true(count_lines(help) <= 32);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_help_text),
	    cmocka_unit_test(test_short_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
