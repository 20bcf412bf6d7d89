// SPDX-License-Identifier: MIT
// sleep: what run counts say of a thread, case by case.
#include "memory.h"
#include "sleep.h"
#include "tracee_stop.h"
#include "unit.h"

struct testcase {
	const char *name;
	struct sleep sleep;
	uint64_t runs; // now
	enum sleep_verdict not_asked, not_blocked, blocked;
};

#define ALWAYS(verdict) verdict, verdict, verdict

static const struct testcase CASES[] = {
    {"never seen", {false, 0, false, 0}, 1, ALWAYS(SLEEP_UNKNOWN)},
    {"ran when it was seen", {false, 5, false, 0}, 5, ALWAYS(SLEEP_UNKNOWN)},
    {"asleep, not scheduled since", {true, 5, false, 0}, 5, ALWAYS(SLEEP_ON)},
    {"asleep, scheduled since", {true, 5, false, 0}, 6, ALWAYS(SLEEP_UNKNOWN)},
    // Seen asleep with 5, stopped: 6 while it stood, 7 when it is asleep again.
    {"stopped in its sleep, not on a CPU since", {true, 7, true, 6}, 6, ALWAYS(SLEEP_ON)},
    {"the same, back at its call", {true, 7, true, 6}, 7, SLEEP_ASK, SLEEP_UNKNOWN, SLEEP_ON},
    {"the same, scheduled once more", {true, 7, true, 6}, 8, ALWAYS(SLEEP_UNKNOWN)},
    {"the same, and seen asleep since", {true, 7, false, 6}, 7, ALWAYS(SLEEP_ON)},
    // It had been woken, and slept again within its call, when it was stopped.
    {"woken once before its stop", {true, 7, true, 7}, 7, SLEEP_ASK, SLEEP_READY, SLEEP_ON},
    {"stopped while it ran, not on a CPU since",
     {false, 2, true, 9},
     9,
     SLEEP_ASK,
     SLEEP_READY,
     SLEEP_UNKNOWN},
    {"stopped while it ran, runs on", {false, 2, true, 9}, 10, ALWAYS(SLEEP_UNKNOWN)},
    {"its count is not known of its stop", {false, 2, true, 0}, 0, ALWAYS(SLEEP_UNKNOWN)},
};

static void test_judge(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(CASES); i++) {
		const struct testcase *c = &CASES[i];
		print_message("# %s\n", c->name);
		assert_int_equal(sleep_judge(&c->sleep, c->runs, SLEEP_NOT_ASKED), c->not_asked);
		assert_int_equal(sleep_judge(&c->sleep, c->runs, SLEEP_NOT_BLOCKED),
		                 c->not_blocked);
		assert_int_equal(sleep_judge(&c->sleep, c->runs, SLEEP_BLOCKED), c->blocked);
	}
}

// A sleeper whose call begins again after its stop sleeps on; one that was given a signal, or that
// left its call, does not.
static void test_release(void **state)
{
	static const struct {
		bool was_asleep;
		struct tracee_stop stop;
		bool asleep;
	} cases[] = {
	    {true, {.interrupted = true, .resumes = true}, true},
	    {true, {.interrupted = true}, false},
	    {true, {.signal = 10, .resumes = true}, false},
	    {true, {.group_stop = true}, true},
	    {false, {.interrupted = true, .resumes = true}, false},
	    {false, {.group_stop = true}, false},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		struct sleep sleep = {.asleep = true};
		sleep_note_seen(&sleep, 5);
		sleep_note_release(&sleep, cases[i].was_asleep, &cases[i].stop);
		assert_int_equal(sleep.asleep, cases[i].asleep);
		const enum sleep_verdict back = sleep_judge(&sleep, 7, SLEEP_BLOCKED);
		assert_int_equal(back, cases[i].asleep ? SLEEP_ON : SLEEP_UNKNOWN);
		// Whatever it was in: it is no longer that.
		assert_int_equal(sleep_judge(&sleep, 8, SLEEP_BLOCKED), SLEEP_UNKNOWN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_judge),
	    cmocka_unit_test(test_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
