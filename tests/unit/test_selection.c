// SPDX-License-Identifier: MIT
// Which samples a selection takes.
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "report_fixture.h"
#include "unit.h"

enum { READ = 0, FUTEX = 202 }; // numbers of system calls

static void fill(struct report_fixture *f)
{
	const uint32_t outer = report_fixture_function(f, "outer", "outer", "");
	const uint32_t inner = report_fixture_function(f, "ns::in(int)", "_ZN2ns2inEi", "");
	const struct fixture_line inlined[] = {{inner, 1}, {outer, 2}};
	const uint32_t ids[] = {
	    report_fixture_frame(f, "leaf"),
	    report_fixture_location(f, 1, 0x2010, inlined, 2),
	    report_fixture_frame(f, "main"),
	    report_fixture_location(f, 0, 0x10008, NULL, 0),
	};
	const uint32_t a = report_fixture_thread(f, 1, "worker-1");
	const uint32_t b = report_fixture_thread(f, 2, "main");
	const uint32_t read = profile_intern_wait(&f->profile, READ, "pipe:[1]", "pipe_read\n");
	const uint32_t futex = profile_intern_wait(&f->profile, FUTEX, "", "");
	const uint32_t fault = profile_intern_wait(&f->profile, NO_SYSCALL, "", "fault\n");

	report_fixture_sample(f, a, THREAD_RUNNING, ids, 3, STACK_COMPLETE, 1);          // 0
	report_fixture_sample(f, b, THREAD_DISK, ids + 1, 2, STACK_COMPLETE, 1);         // 1
	report_fixture_wait(f, a, THREAD_SLEEPING, ids + 2, 1, STACK_COMPLETE, read, 1); // 2
	report_fixture_wait(f, b, THREAD_SLEEPING, ids + 3, 1, STACK_NO_RULE, futex, 1); // 3
	report_fixture_wait(f, b, THREAD_STOPPED, NULL, 0, STACK_NOT_SAMPLED, fault, 1); // 4
}

// The samples that are selected, as digits.
static void assert_selected(const struct selection *selection, bool syscalls, const char *expected)
{
	struct report_fixture f;
	char found[8] = "";
	size_t n = 0;

	report_fixture_init(&f);
	fill(&f);
	f.report.syscalls = syscalls;
	report_fixture_select(&f, selection);
	for (size_t i = 0; i < f.profile.n_samples; i++)
		if (f.selected[i])
			found[n++] = (char)('0' + i);
	report_fixture_deinit(&f);
	assert_string_equal(found, expected);
}

static void assert_matching(enum selection_regex which, const char *pattern, const char *expected)
{
	struct selection selection = {0};
	regex_t regex;

	assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	selection.regexes[which] = &regex;
	assert_selected(&selection, true, expected);
	regfree(&regex);
}

static void test_states(void **state)
{
	(void)state;
	assert_selected(&(struct selection){0}, false, "01234");
	assert_selected(&(struct selection){.states = 1u << THREAD_RUNNING}, false, "0");
	assert_selected(&(struct selection){.states = ~(1u << THREAD_RUNNING)}, false, "1234");
	assert_selected(&(struct selection){.states = 1u << THREAD_DISK | 1u << THREAD_STOPPED},
	                false, "14");
}

static void test_threads_and_calls(void **state)
{
	(void)state;
	assert_matching(SELECTION_THREAD, "^work", "02");
	assert_matching(SELECTION_THREAD, "", "01234");
	assert_matching(SELECTION_SYSCALL, "^read$", "2");
	assert_matching(SELECTION_SYSCALL, "", "23"); // those that wait in one
	assert_matching(SELECTION_SYSCALL, "pipe", "");
}

static void test_frames(void **state)
{
	(void)state;
	assert_matching(SELECTION_FOCUS, "^leaf$", "0");
	assert_matching(SELECTION_FOCUS, "^outer$", "01");
	assert_matching(SELECTION_FOCUS, "^ns::in\\(int\\)$", "01"); // inlined, demangled
	assert_matching(SELECTION_FOCUS, "^main$", "012");           // not the thread of that name
	assert_matching(SELECTION_FOCUS, "anon\\+0x10008", "3");
	assert_matching(SELECTION_FOCUS, "no unwinding rule", "3");
	assert_matching(SELECTION_FOCUS, "not available", "4");
	assert_matching(SELECTION_FOCUS, "^pipe_read_", "2");
	assert_matching(SELECTION_FOCUS, "^read pipe:", "2");
	assert_matching(SELECTION_FOCUS, "^fault_", "4");
	assert_matching(SELECTION_FOCUS, "nothing", "");
	assert_matching(SELECTION_IGNORE, "^outer$", "234");
	assert_matching(SELECTION_IGNORE, "_\\[k\\]$", "01");
	assert_matching(SELECTION_IGNORE, "nothing", "01234");
}

// What is not shown is not looked at.
static void test_frames_of_calls_must_be_shown(void **state)
{
	regex_t regex;

	(void)state;
	assert_int_equal(regcomp(&regex, "^(futex|read)", REG_EXTENDED | REG_NOSUB), 0);
	const struct selection selection = {.regexes = {[SELECTION_FOCUS] = &regex}};
	assert_selected(&selection, true, "23");
	assert_selected(&selection, false, "");
	regfree(&regex);
}

static void test_all_together(void **state)
{
	struct selection selection = {.states = 1u << THREAD_RUNNING | 1u << THREAD_SLEEPING};
	const char *const patterns[N_SELECTION_REGEXES] = {
	    [SELECTION_THREAD] = "worker",
	    [SELECTION_FOCUS] = "main",
	    [SELECTION_IGNORE] = "leaf",
	};
	regex_t regexes[N_SELECTION_REGEXES];

	(void)state;
	for (size_t i = 0; i < N_SELECTION_REGEXES; i++) {
		if (!patterns[i])
			continue;
		assert_int_equal(regcomp(&regexes[i], patterns[i], REG_NOSUB), 0);
		selection.regexes[i] = &regexes[i];
	}
	assert_selected(&selection, false, "2");
	for (size_t i = 0; i < N_SELECTION_REGEXES; i++)
		if (patterns[i])
			regfree(&regexes[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_states),
	    cmocka_unit_test(test_threads_and_calls),
	    cmocka_unit_test(test_frames),
	    cmocka_unit_test(test_frames_of_calls_must_be_shown),
	    cmocka_unit_test(test_all_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
