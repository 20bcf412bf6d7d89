// SPDX-License-Identifier: MIT
// stop_state: in which state a stopped thread is counted, case by case.
#include <sys/syscall.h>

#include "unit.h"
#include <linux/futex.h>

#include "memory.h"
#include "stop_state.h"

// Times in microseconds: the tick is due at 1000, the thread is found stopped at 1100.
#define SEEN(state, from, to, n_runs, waited_us)                                                   \
	.asked_state = (state), .asked_call = (from), .call = (to), .has_runs = true,              \
	.asked = {0, 5000000, 7}, .stopped = {0, 5000000 + (waited_us)*1000, 7 + (n_runs)},        \
	.due_ns = 1000000, .found_ns = 1100000
enum { NONE = -1 };

static const struct {
	const char *name;
	struct stop_seen seen;
	enum thread_state expected;
} CASES[] = {
    {"had its CPU all the time", {SEEN(THREAD_RUNNING, NONE, NONE, 0, 0)}, THREAD_RUNNING},
    {"displaced by the sampler", {SEEN(THREAD_RUNNING, NONE, NONE, 1, 80)}, THREAD_RUNNING},
    {"waited for 3 ms", {SEEN(THREAD_RUNNING, NONE, NONE, 1, 3000)}, THREAD_RUNNABLE},
    {"waited for 3 ms, in a call",
     {SEEN(THREAD_RUNNING, NONE, SYS_write, 1, 3000)},
     THREAD_RUNNABLE},
    {"displaced in a call", {SEEN(THREAD_RUNNING, NONE, SYS_write, 1, 80)}, THREAD_RUNNING},
    {"woken since the tick",
     {SEEN(THREAD_RUNNING, NONE, SYS_nanosleep, 1, 80), .waits = true},
     THREAD_SLEEPING},
    {"woken long before it",
     {SEEN(THREAD_RUNNING, NONE, SYS_nanosleep, 1, 3000), .waits = true},
     THREAD_RUNNABLE},
    {"about to sleep",
     {SEEN(THREAD_RUNNING, NONE, SYS_nanosleep, 0, 0), .waits = true},
     THREAD_RUNNING},
    {"no figures", {.asked_state = THREAD_RUNNING, .call = NONE}, THREAD_RUNNING},
    {"asleep still", {SEEN(THREAD_SLEEPING, SYS_read, SYS_read, 1, 10)}, THREAD_SLEEPING},
    {"asleep, then computes", {SEEN(THREAD_SLEEPING, SYS_read, NONE, 0, 0)}, THREAD_RUNNING},
    {"asleep, then in another call",
     {SEEN(THREAD_SLEEPING, SYS_read, SYS_write, 1, 20)},
     THREAD_RUNNING},
    {"asleep, then without a CPU",
     {SEEN(THREAD_SLEEPING, SYS_read, NONE, 1, 3000)},
     THREAD_RUNNABLE},
    {"asleep, it is not known where",
     {SEEN(THREAD_SLEEPING, STOP_STATE_ANY_CALL, SYS_read, 1, 10)},
     THREAD_SLEEPING},
    {"in a page fault", {SEEN(THREAD_DISK, NONE, NONE, 1, 10)}, THREAD_DISK},
    {"was in a page fault", {SEEN(THREAD_DISK, NONE, SYS_read, 1, 10)}, THREAD_RUNNING},
    {"stopped by job control",
     {SEEN(THREAD_STOPPED, NONE, NONE, 1, 10), .group_stop = true},
     THREAD_STOPPED},
    {"continued meanwhile", {SEEN(THREAD_STOPPED, NONE, NONE, 1, 10)}, THREAD_RUNNING},
};

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < array_size(CASES); i++)
		if (stop_state(&CASES[i].seen) != CASES[i].expected)
			fail_msg("%s: %d", CASES[i].name, stop_state(&CASES[i].seen));
}

static void test_waits(void **state)
{
	(void)state;
	assert_true(stop_state_waits(SYS_futex, FUTEX_WAIT | FUTEX_PRIVATE_FLAG));
	assert_true(stop_state_waits(SYS_futex, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME));
	assert_false(stop_state_waits(SYS_futex, FUTEX_WAKE | FUTEX_PRIVATE_FLAG));
	assert_true(stop_state_waits(SYS_nanosleep, 0));
	assert_false(stop_state_waits(SYS_write, 0));
	assert_false(stop_state_waits(NONE, 0));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
