// SPDX-License-Identifier: MIT
// decision: what is done with a thread, case by case.
#include "decision.h"
#include "memory.h"
#include "unit.h"

static void test_before_look(void **state)
{
	(void)state;
	assert_int_equal(decision_before_look(false, false), DECISION_LOOK);
	assert_int_equal(decision_before_look(false, true), DECISION_WAIT);
	// --stop-all: those that run were asked first, and may have stopped already.
	assert_int_equal(decision_before_look(true, true), DECISION_NOTHING);
	assert_int_equal(decision_before_look(true, false), DECISION_NOTHING);
}

static void test_after_look(void **state)
{
	static const struct {
		enum sleeper_look look;
		enum decision not_asked, bears, bears_none;
	} cases[] = {
#define ALWAYS(decision) decision, decision, decision
	    {SLEEPER_UNCHANGED, ALWAYS(DECISION_KEEP)},
	    {SLEEPER_WAITS, ALWAYS(DECISION_KEEP_RAN)},
	    {SLEEPER_COPIED, ALWAYS(DECISION_COPY)},
	    {SLEEPER_HIDDEN, DECISION_ASK, DECISION_STOP, DECISION_MARK},
	    {SLEEPER_BARE, ALWAYS(DECISION_MARK)},
	    {SLEEPER_RUNS, ALWAYS(DECISION_STOP)},
	    {SLEEPER_GONE, ALWAYS(DECISION_FORGET)},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		const enum sleeper_look look = cases[i].look;
		assert_int_equal(decision_after_look(look, BEARS_NOT_ASKED), cases[i].not_asked);
		assert_int_equal(decision_after_look(look, BEARS_STOP), cases[i].bears);
		assert_int_equal(decision_after_look(look, BEARS_NO_STOP), cases[i].bears_none);
	}
}

static const struct {
	const char *name;
	struct copy_seen seen;
	enum decision not_asked, bears, bears_none;
} COPIES[] = {
    {"whole", {.end = STACK_COMPLETE}, ALWAYS(DECISION_COUNT)},
    {"no rule: nothing shows more", {.end = STACK_NO_RULE}, ALWAYS(DECISION_COUNT)},
    {"longer than was copied", {.end = STACK_NOT_COPIED}, ALWAYS(DECISION_COPY)},
    {"the same for the seventh time",
     {.end = STACK_NOT_COPIED, .n_again = 6},
     ALWAYS(DECISION_COPY)},
    {"and for the last", {.end = STACK_NOT_COPIED, .n_again = 7}, ALWAYS(DECISION_COUNT)},
    {"unreadable", {.end = STACK_UNREADABLE}, ALWAYS(DECISION_COUNT)},
    {"the same for the last time", {.end = STACK_NOT_COPIED, .n_again = 7}, ALWAYS(DECISION_COUNT)},
    {"on one of many stacks",
     {.end = STACK_UNREADABLE, .is_elsewhere = true, .n_again = 31},
     ALWAYS(DECISION_COPY)},
    {"on a stack elsewhere",
     {.end = STACK_UNREADABLE, .is_elsewhere = true},
     ALWAYS(DECISION_COPY)},
    {"a register is missing",
     {.end = STACK_NEEDS_REGISTER},
     DECISION_ASK,
     DECISION_STOP,
     DECISION_COUNT},
    {"the same, of a thread that is held",
     {.end = STACK_NEEDS_REGISTER, .held_at_exec = true},
     ALWAYS(DECISION_COUNT)},
    {"the same, under another tracer",
     {.end = STACK_NEEDS_REGISTER, .is_traced = true},
     ALWAYS(DECISION_COUNT)},
    {"another stack, of nobody that is known", {.end = STACK_SWITCHED}, ALWAYS(DECISION_COUNT)},
    {"one that the next copy holds",
     {.end = STACK_SWITCHED, .lack = LANGUAGE_LACKS_COPY},
     ALWAYS(DECISION_COPY)},
    {"one that only a stop shows",
     {.end = STACK_SWITCHED, .lack = LANGUAGE_LACKS_STOP},
     DECISION_ASK,
     DECISION_STOP,
     DECISION_COUNT},
};

static void test_after_copy(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(COPIES); i++) {
		struct copy_seen seen = COPIES[i].seen;
		print_message("# %s\n", COPIES[i].name);
		assert_int_equal(decision_after_copy(&seen), COPIES[i].not_asked);
		seen.bears = BEARS_STOP;
		assert_int_equal(decision_after_copy(&seen), COPIES[i].bears);
		seen.bears = BEARS_NO_STOP;
		assert_int_equal(decision_after_copy(&seen), COPIES[i].bears_none);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_before_look),
	    cmocka_unit_test(test_after_look),
	    cmocka_unit_test(test_after_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
