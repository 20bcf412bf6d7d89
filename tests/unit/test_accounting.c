// SPDX-License-Identifier: MIT
// accounting: a thread's ticks, as plain values.
#include <stdlib.h>

#include "memory.h"
#include "run_stats.h"
#include "accounting.h"
#include "unit.h"

enum { PERIOD = 10, WAIT = 1 };

// One thread, watched from 0 on.
struct fixture {
	struct profile profile;
	struct run_stats stats;
	struct accounting accounting;
	struct account account;
	uint32_t stack_a, stack_b;
};

static int setup(void **state)
{
	struct fixture *f = memory_alloc_zeroed(1, sizeof(*f));
	const uint32_t a = 1, b = 2;

	f->profile.period_ns = PERIOD;
	f->accounting = (struct accounting){.profile = &f->profile, .stats = &f->stats};
	f->account.thread = profile_add_thread(&f->profile, 1, 1, "a", 0);
	f->stack_a = profile_intern_stack(&f->profile, &a, 1, STACK_COMPLETE, 0);
	f->stack_b = profile_intern_stack(&f->profile, &b, 1, STACK_COMPLETE, 0);
	f->account.wait = profile_intern_wait(&f->profile, WAIT, "", "");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	profile_deinit(&f->profile);
	free(f);
	return 0;
}

static int64_t next_tick(struct fixture *f)
{
	return f->accounting.now_ns += PERIOD;
}

// The ticks and the time of all samples with that stack in that state.
static void assert_counted(const struct fixture *f, uint32_t stack, enum thread_state state,
                           uint64_t ticks)
{
	uint64_t count = 0;
	int64_t wall_ns = 0;

	for (size_t i = 0; i < f->profile.n_samples; i++) {
		const struct sample *sample = &f->profile.samples[i];
		if (sample->stack != stack || sample->state != state)
			continue;
		assert_int_equal(sample->wait == WAIT_NONE,
		                 state == THREAD_RUNNING || state == THREAD_RUNNABLE);
		count += sample->count;
		wall_ns += sample->wall_ns;
	}
	assert_int_equal(count, ticks);
	assert_int_equal(wall_ns, (int64_t)ticks * PERIOD);
}

// Every tick until now is in some sample, once.
static void assert_balanced(const struct fixture *f)
{
	uint64_t count = 0;

	for (size_t i = 0; i < f->profile.n_samples; i++)
		count += f->profile.samples[i].count;
	assert_int_equal(count, f->stats.samples);
	assert_int_equal((int64_t)count * PERIOD, f->accounting.now_ns);
}

static void test_sleeps_on(void **state)
{
	struct fixture *f = *state;

	accounting_count(&f->accounting, &f->account, f->stack_a, THREAD_SLEEPING, next_tick(f));
	next_tick(f);
	accounting_again(&f->accounting, &f->account);
	f->accounting.now_ns += 3 * PERIOD;
	accounting_slept(&f->accounting, &f->account, 3);
	assert_counted(f, f->stack_a, THREAD_SLEEPING, 5);
	assert_int_equal(f->stats.credits, 4);
	assert_balanced(f);
}

// A sleeper's stack from before the first tick is counted with the first one, and no earlier.
static void test_primed(void **state)
{
	struct fixture *f = *state;

	f->accounting.priming = true;
	accounting_count(&f->accounting, &f->account, f->stack_a, THREAD_DISK, 0);
	f->accounting.priming = false;
	assert_int_equal(f->stats.samples, 0);
	f->accounting.now_ns += 4 * PERIOD;
	accounting_slept(&f->accounting, &f->account, 4);
	assert_counted(f, f->stack_a, THREAD_DISK, 4);
	assert_int_equal(f->stats.credits, 3);
	assert_balanced(f);
}

// One that is found ready where it slept, and sleeps on later in the same sleep.
static void test_as_before(void **state)
{
	struct fixture *f = *state;

	accounting_count(&f->accounting, &f->account, f->stack_a, THREAD_SLEEPING, next_tick(f));
	const uint32_t sample = f->account.sample;
	next_tick(f);
	accounting_repeat_in_state(&f->accounting, &f->account, THREAD_RUNNING);
	assert_int_equal(f->account.sample, sample);
	next_tick(f);
	accounting_again(&f->accounting, &f->account);
	assert_counted(f, f->stack_a, THREAD_SLEEPING, 2);
	assert_counted(f, f->stack_a, THREAD_RUNNING, 1);
	assert_balanced(f);
}

static void test_primed_as_before(void **state)
{
	struct fixture *f = *state;

	f->accounting.priming = true;
	accounting_count(&f->accounting, &f->account, f->stack_b, THREAD_SLEEPING, 0);
	f->accounting.priming = false;
	next_tick(f);
	accounting_repeat_in_state(&f->accounting, &f->account, THREAD_RUNNING);
	assert_false(f->account.sampled); // its sleep is still to be counted as primed
	next_tick(f);
	accounting_again(&f->accounting, &f->account);
	assert_counted(f, f->stack_b, THREAD_RUNNING, 1);
	assert_counted(f, f->stack_b, THREAD_SLEEPING, 1);
	assert_balanced(f);
}

// What a thread is in at the ticks from that at which it is asked to stop on, until it stops.
struct pending_case {
	const char *states; // r: running, s: sleeping, d: disk
	uint64_t running, sleeping, disk;
};

static enum thread_state state_of(char letter)
{
	return letter == 'r' ? THREAD_RUNNING : letter == 's' ? THREAD_SLEEPING : THREAD_DISK;
}

// They are all counted with the stack that it shows then, each in its state.
static void test_pending(void **state)
{
	static const struct pending_case cases[] = {
	    {"r", 1, 0, 0},
	    {"rrrr", 4, 0, 0},
	    {"rddd", 1, 0, 3},
	    {"sddrrs", 2, 2, 2},
	    // So are those of more stretches than are kept apart.
	    {"rdrdrdrdrdrd", 6, 0, 6},
	    {"rdrdrdrdrddddrrsdsr", 8, 2, 9},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		void *fixture;
		setup(&fixture);
		struct fixture *f = fixture;
		const int64_t asked_ns = next_tick(f);
		for (const char *letter = cases[i].states + 1; *letter; letter++) {
			next_tick(f);
			accounting_pending(&f->accounting, &f->account, state_of(*letter));
		}
		accounting_count(&f->accounting, &f->account, f->stack_a,
		                 state_of(cases[i].states[0]), asked_ns);
		assert_counted(f, f->stack_a, THREAD_RUNNING, cases[i].running);
		assert_counted(f, f->stack_a, THREAD_SLEEPING, cases[i].sleeping);
		assert_counted(f, f->stack_a, THREAD_DISK, cases[i].disk);
		assert_balanced(f);
		assert_int_equal(f->account.n_pending_ticks, 0);
		teardown(&fixture);
	}
}

// Of the ticks at which it was ready, as many found it without a CPU as the kernel's count says.
static void test_pending_without_a_cpu(void **state)
{
	struct fixture *f = *state;
	const int64_t asked_ns = next_tick(f);

	for (int i = 0; i < 5; i++) {
		next_tick(f);
		accounting_pending(&f->accounting, &f->account,
		                   i < 4 ? THREAD_RUNNING : THREAD_DISK);
	}
	f->account.pending_cpu_ns = PERIOD;
	f->account.pending_delay_ns = 3 * PERIOD;
	accounting_count(&f->accounting, &f->account, f->stack_a, THREAD_RUNNING, asked_ns);
	assert_counted(f, f->stack_a, THREAD_RUNNING, 2);
	assert_counted(f, f->stack_a, THREAD_RUNNABLE, 3);
	assert_counted(f, f->stack_a, THREAD_DISK, 1);
	assert_balanced(f);
	assert_int_equal(f->account.pending_delay_ns, 0);
}

// For how long in turn it has been so: by that it is asked again.
static void test_pending_counts(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(accounting_pending(&f->accounting, &f->account, THREAD_DISK), 1);
	assert_int_equal(accounting_pending(&f->accounting, &f->account, THREAD_DISK), 2);
	assert_int_equal(accounting_pending(&f->accounting, &f->account, THREAD_RUNNING), 1);
	assert_int_equal(accounting_pending(&f->accounting, &f->account, THREAD_DISK), 1);
}

// A sleeper that woke before it was stopped: what it slept in is one tick's.
static void test_moved(void **state)
{
	struct fixture *f = *state;
	const int64_t asked_ns = next_tick(f);

	for (int i = 0; i < 3; i++) {
		next_tick(f);
		accounting_pending(&f->accounting, &f->account,
		                   i < 2 ? THREAD_RUNNING : THREAD_SLEEPING);
	}
	accounting_count_alone(&f->accounting, &f->account, f->stack_a, THREAD_SLEEPING, asked_ns);
	assert_counted(f, f->stack_a, THREAD_SLEEPING, 1);
	assert_int_equal(f->account.n_pending_ticks, 2);
	accounting_count_pending(&f->accounting, &f->account, f->stack_b);
	assert_counted(f, f->stack_a, THREAD_SLEEPING, 1);
	assert_counted(f, f->stack_b, THREAD_RUNNING, 2);
	assert_counted(f, f->stack_b, THREAD_SLEEPING, 1);
	assert_balanced(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_sleeps_on, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_primed, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_as_before, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_primed_as_before, setup, teardown),
	    cmocka_unit_test(test_pending),
	    cmocka_unit_test_setup_teardown(test_pending_without_a_cpu, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_pending_counts, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_moved, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
