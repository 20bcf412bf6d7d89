// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "labels.h"
#include "memory.h"
#include "profile.h"
#include "profile_collect.h"
#include "unit.h"

static void test_locations_are_interned(void **state)
{
	struct profile profile = {0};

	(void)state;
	assert_int_equal(profile_intern_location(&profile, 0, 0x1000), 0);
	assert_int_equal(profile_intern_location(&profile, 1, 0x1000), 1);
	assert_int_equal(profile_intern_location(&profile, 0, 0x1001), 2);
	assert_int_equal(profile_intern_location(&profile, 1, 0x1000), 1);
	assert_int_equal(profile.n_locations, 3);
	assert_int_equal(profile.locations[1].module, 1);
	assert_int_equal(profile.locations[2].address, 0x1001);
	profile_deinit(&profile);
}

static void test_stacks_are_interned(void **state)
{
	struct profile profile = {0};
	const uint32_t ids[] = {3, 1, 2};

	(void)state;
	const uint32_t whole = profile_intern_stack(&profile, ids, 3, STACK_COMPLETE, false);
	const uint32_t shorter = profile_intern_stack(&profile, ids, 2, STACK_COMPLETE, false);
	const uint32_t cut = profile_intern_stack(&profile, ids, 3, STACK_NO_RULE, false);
	const uint32_t none = profile_intern_stack(&profile, NULL, 0, STACK_NOT_SAMPLED, false);

	assert_int_equal(profile.n_stacks, 4);
	assert_int_equal(profile_intern_stack(&profile, ids, 3, STACK_COMPLETE, false), whole);
	assert_int_equal(profile_intern_stack(&profile, ids, 2, STACK_COMPLETE, false), shorter);
	assert_int_equal(profile_intern_stack(&profile, ids, 3, STACK_NO_RULE, false), cut);
	assert_int_equal(profile_intern_stack(&profile, NULL, 0, STACK_NOT_SAMPLED, false), none);
	assert_int_equal(profile.n_stacks, 4);
	assert_int_equal(profile.stacks[shorter].n_frames, 2);
	assert_int_equal(profile.stacks[cut].end, STACK_NO_RULE);
	assert_memory_equal(profile.location_ids + profile.stacks[cut].first, ids, sizeof(ids));
	profile_deinit(&profile);
}

static void test_samples_are_counted_by_stack_thread_and_state(void **state)
{
	struct profile profile = {0};
	const uint32_t a = profile_add_thread(&profile, 1, 1, "a", 0);
	const uint32_t b = profile_add_thread(&profile, 1, 2, "b", 0);
	const uint32_t first = profile_count(&profile, a, 0, THREAD_RUNNING, WAIT_NONE, 1, 10);

	(void)state;
	assert_int_equal(profile.n_waits, 1); // each sample's is there, and says nothing
	assert_int_equal(profile.waits[WAIT_NONE].syscall, NO_SYSCALL);
	assert_int_equal(profile_count(&profile, a, 0, THREAD_RUNNING, WAIT_NONE, 1, 25), first);
	assert_int_not_equal(profile_count(&profile, a, 1, THREAD_RUNNING, WAIT_NONE, 1, 30),
	                     first);
	assert_int_not_equal(profile_count(&profile, a, 0, THREAD_SLEEPING, WAIT_NONE, 1, 37),
	                     first);
	assert_int_not_equal(profile_count(&profile, b, 0, THREAD_RUNNING, WAIT_NONE, 1, 40),
	                     first);
	profile_count_again(&profile, first, 3, 137);
	assert_int_equal(profile.n_samples, 4);
	assert_int_equal(profile.samples[first].count, 5);
	assert_int_equal(profile.samples[first].wall_ns, 125);
	assert_int_equal(profile.samples[first].cpu_ns, 125);
	profile_deinit(&profile);
}

static void test_a_goroutine_has_nothing_of_the_one_before(void **state)
{
	struct profile profile = {0};
	const uint32_t id = profile_add_task(&profile, 1, 7, "f", 0);

	(void)state;
	profile_label_thread(&profile, id, profile_intern_labels(&profile, "tenant\tred\n"));
	profile.threads[id].waits_since_ns = 5;
	const uint32_t first = profile_count(&profile, id, 0, THREAD_SLEEPING, WAIT_NONE, 1, 10);
	profile_reuse_task(&profile, id, 20);
	const uint32_t second = profile_count(&profile, id, 0, THREAD_SLEEPING, WAIT_NONE, 1, 30);
	assert_int_not_equal(profile.samples[first].labels, LABELS_NONE);
	assert_int_equal(profile.samples[second].labels, LABELS_NONE);
	assert_int_equal(profile.threads[id].waits_since_ns, 0);
	profile_deinit(&profile);
}

static void test_waits_are_interned(void **state)
{
	struct profile profile = {0};
	const uint32_t thread = profile_add_thread(&profile, 1, 1, "t", 0);

	(void)state;
	assert_int_equal(profile_intern_wait(&profile, NO_SYSCALL, "", ""), WAIT_NONE);
	assert_int_equal(profile.n_waits, 0);
	const uint32_t futex = profile_intern_wait(&profile, 202, "", "");
	const uint32_t read = profile_intern_wait(&profile, 0, "pipe:[1]", "");
	const uint32_t deep = profile_intern_wait(&profile, 0, "pipe:[1]", "pipe_read\n");
	const uint32_t fault = profile_intern_wait(&profile, NO_SYSCALL, "", "fault\n");
	assert_int_equal(profile.n_waits, 5); // with WAIT_NONE
	assert_int_equal(profile_intern_wait(&profile, 0, "pipe:[1]", ""), read);
	assert_int_equal(profile_intern_wait(&profile, 202, "", ""), futex);
	assert_int_not_equal(fault, WAIT_NONE);
	// What was found out later makes no other wait of it.
	profile_explain_descriptor(&profile, read, "the pipe");
	profile_explain_descriptor(&profile, read, "a pipe");
	assert_string_equal(profile.waits[read].meaning, "a pipe");
	assert_int_equal(profile_intern_wait(&profile, 0, "pipe:[1]", ""), read);
	assert_int_equal(profile_intern_wait(&profile, 0, "pipe:[1]", "pipe_read\n"), deep);
	// A sample each.
	const uint32_t sample = profile_count(&profile, thread, 0, THREAD_SLEEPING, read, 1, 10);
	assert_int_not_equal(profile_count(&profile, thread, 0, THREAD_SLEEPING, deep, 1, 20),
	                     sample);
	assert_int_equal(profile_count(&profile, thread, 0, THREAD_SLEEPING, read, 2, 30), sample);
	assert_int_equal(profile.samples[sample].wait, read);
	profile_deinit(&profile);
}

static void assert_folded(struct profile *profile, const char *descriptor, const char *folded)
{
	const uint32_t id = profile_intern_wait(profile, 1, descriptor, "");

	assert_string_equal(profile->waits[id].descriptor, folded);
	assert_int_equal(profile->waits[id].syscall, 1);
	assert_int_equal(profile_wait_is_folded(&profile->waits[id]),
	                 strcmp(descriptor, folded) != 0);
}

// As a server of short connections makes them: the system call is kept and what sort of thing it
// waits for, and memory is bounded.
// The number after the last quote is the holder's, whatever the name is.
static void test_holders(void **state)
{
	static const struct {
		const char *descriptor;
		int tid;
	} cases[] = {
	    {"mutex 0x7f00, held by \"gc\" 4711", 4711},
	    {"GIL, held by \"a \\\" 7\" 12", 12},
	    {"the end of \"cc\" 17", 17},
	    {"the end of \"cc\" 99999999999", 0},
	    {"the end of \"cc\" 17 ", 0},
	    {"GIL, held by another thread", 0},
	    {"/tmp/x, held by \"y\" 5", 0},
	    {"pipe:[5]", 0},
	    {"", 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		_cleanup_free_ char *text = memory_strdup(cases[i].descriptor);
		assert_int_equal(wait_holder(&(struct wait){.descriptor = text}), cases[i].tid);
	}
}

// Which process has the other end, or the lock of a file.
static void test_peers(void **state)
{
	static const struct {
		const char *descriptor, *meaning;
		int pid;
	} cases[] = {
	    {"pipe:[5]", "pipe:[5], other end: \"a\" 12", 12},
	    {"socket:[5]", "unix /run/x, other end: \"a \" 7\" 13", 13},
	    {"socket:[5]", "tcp 127.0.0.1:1 -> 127.0.0.1:2", 0},
	    {"file lock /x, held by process \"a\" 14", NULL, 14},
	    {"/x, held by process \"a\" 15", NULL, 0},
	    {"mutex 0x7f00, held by \"gc\" 4711", NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(cases); i++) {
		_cleanup_free_ char *text = memory_strdup(cases[i].descriptor);
		_cleanup_free_ char *meaning =
		    cases[i].meaning ? memory_strdup(cases[i].meaning) : NULL;
		const struct wait wait = {.descriptor = text, .meaning = meaning};
		assert_int_equal(wait_peer(&wait), cases[i].pid);
		assert_true(cases[i].pid == 0 || wait_holder(&wait) == 0);
	}
}

static void test_endless_waits(void **state)
{
	enum { MANY = 200000 };
	struct profile profile = {0};

	(void)state;
	for (int i = 0; i < MANY; i++) {
		_cleanup_free_ char *name = memory_printf("socket:[%d]", i);
		const uint32_t wait = profile_intern_wait(&profile, i % 2, name, "");
		assert_int_equal(profile.waits[wait].syscall, i % 2);
	}
	assert_in_range(profile.n_waits, 1000, 100000);
	assert_folded(&profile, "socket:[77]", "socket:[77]"); // was there before
	assert_folded(&profile, "socket:[-1]", "socket:[...]");
	assert_folded(&profile, "pipe:[12] +3", "pipe:[...]");
	assert_folded(&profile, "/srv/x", "/[...]");
	assert_folded(&profile, "fifo /run/x", "fifo [...]");
	assert_folded(&profile, "mutex 0x10, held by \"a\" 7", "mutex [...]");
	assert_folded(&profile, "0x10", "[...]");
	assert_folded(&profile, "eventfd", "eventfd");
	assert_folded(&profile, "", "");
	const uint32_t deep = profile_intern_wait(&profile, 1, "pipe:[9]", "pipe_read\n");
	assert_string_equal(profile.waits[deep].frames, "[...]\n");
	assert_true(profile_wait_is_folded(&profile.waits[deep]));
	const uint32_t chan = profile_intern_reason(&profile, "chan receive", "chan 0xc0001");
	assert_string_equal(profile.waits[chan].descriptor, "chan [...]");
	assert_string_equal(profile.waits[chan].reason, "chan receive");
	profile_deinit(&profile);
}

static void test_only_running_time_is_cpu_time(void **state)
{
	struct profile profile = {0};
	const uint32_t thread = profile_add_thread(&profile, 1, 1, "a", 0);

	(void)state;
	for (enum thread_state s = 0; s < N_THREAD_STATES; s++) {
		const uint32_t id =
		    profile_count(&profile, thread, 0, s, WAIT_NONE, 1, (s + 1) * 100);
		assert_int_equal(profile.samples[id].wall_ns, 100);
		assert_int_equal(profile.samples[id].cpu_ns, s == THREAD_RUNNING ? 100 : 0);
	}
	profile_deinit(&profile);
}

// The books balance: however late and irregular the samples, a thread's wall time is the time
// from when it was first seen to its last sample, and its count the number of ticks.
static void test_accounting_identity(void **state)
{
	enum { THREADS = 5, TICKS = 2000, STACKS = 7 };
	struct profile profile = {0};
	uint64_t ticks[THREADS] = {0}, count[THREADS] = {0}, random = 1;
	int64_t wall_ns[THREADS] = {0}, now_ns = 12345;

	(void)state;
	for (uint32_t i = 0; i < THREADS; i++)
		profile_add_thread(&profile, 1, i + 1, "t", now_ns + i * 1000);
	now_ns += THREADS * 1000;
	for (int i = 0; i < TICKS; i++) {
		random = hash_mix(random, i);
		now_ns += random % (30 * NS_PER_MS);
		const uint32_t thread = random % THREADS;
		const uint64_t n = 1 + random / 7 % 3;
		profile_count(&profile, thread, random / 11 % STACKS, random / 13 % N_THREAD_STATES,
		              WAIT_NONE, n, now_ns);
		ticks[thread] += n;
	}
	for (size_t i = 0; i < profile.n_samples; i++) {
		count[profile.samples[i].thread] += profile.samples[i].count;
		wall_ns[profile.samples[i].thread] += profile.samples[i].wall_ns;
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		const struct thread *thread = &profile.threads[i];
		assert_int_equal(count[i], ticks[i]);
		assert_int_equal(wall_ns[i], thread->last_ns - thread->first_ns);
	}
	profile_deinit(&profile);
}

static void test_thread_names(void **state)
{
	struct profile profile = {0};
	char name[] = "before";
	const uint32_t thread = profile_add_thread(&profile, 1, 1, name, 0);

	(void)state;
	name[0] = 'X';
	assert_string_equal(profile.threads[thread].name, "before");
	profile_rename_thread(&profile, thread, "before");
	profile_rename_thread(&profile, thread, "after");
	assert_string_equal(profile.threads[thread].name, "after");
	profile_deinit(&profile);
}

static void test_every_state_and_end_has_its_name(void **state)
{
	(void)state;
	for (enum thread_state i = 0; i < N_THREAD_STATES; i++) {
		assert_non_null(thread_state_name(i));
		for (enum thread_state j = 0; j < i; j++)
			assert_string_not_equal(thread_state_name(i), thread_state_name(j));
	}
	for (enum stack_end i = 0; i < N_STACK_ENDS; i++) {
		assert_non_null(stack_end_name(i));
		for (enum stack_end j = 0; j < i; j++)
			assert_string_not_equal(stack_end_name(i), stack_end_name(j));
	}
}

static void test_endless_stacks(void **state)
{
	struct profile profile = {.max_location_ids = 100};
	uint32_t locations[10];

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		for (uint32_t j = 0; j < 10; j++)
			locations[j] = j ? i * 10 + j : 7;
		const uint32_t id =
		    profile_intern_stack(&profile, locations, 10, STACK_COMPLETE, false);
		const struct stack *stack = &profile.stacks[id];
		assert_int_equal(profile.location_ids[stack->first], 7);
		assert_int_equal(stack->n_frames, i < 10 ? 10 : 1);
		assert_int_equal(stack->end, i < 10 ? STACK_COMPLETE : STACK_NO_ROOM);
		// Known ones stay whole.
		for (uint32_t j = 1; j < 10; j++)
			locations[j] = j;
		assert_int_equal(
		    profile_intern_stack(&profile, locations, 10, STACK_COMPLETE, false), 0);
	}
	assert_int_equal(profile.n_stacks, 11);
	profile_deinit(&profile);
}

// Processes that come and go, under few numbers or many, leave nothing behind.
static void test_names_of_processes_are_forgotten(void **state)
{
	enum { MANY = 1000, STEP_NS = 10, PID = 7 };
	struct profile profile = {0};
	const uint32_t stack = profile_intern_stack(&profile, NULL, 0, STACK_NOT_SAMPLED, false);

	(void)state;
	profile_begin_process(&profile, 1, "target", 0);
	for (int i = 0; i < MANY; i++) {
		const int pid = i % 2 ? PID : 100 + i;
		char name[16];
		snprintf(name, sizeof(name), "child%d", i);
		profile_begin_process(&profile, pid, name, i * STEP_NS);
		const uint32_t thread = profile_add_thread(&profile, pid, pid, "t", i * STEP_NS);
		profile_count(&profile, thread, stack, THREAD_RUNNING, WAIT_NONE, 1,
		              (i + 1) * STEP_NS);
		profile.threads[thread].ended = true;
	}
	// Of the first and the last one of a number that many have had, the samples are kept.
	_cleanup_free_ bool *kept = memory_alloc_zeroed(MANY, sizeof(*kept));
	kept[1] = kept[MANY - 1] = true;
	const struct thread first = profile.threads[1], last = profile.threads[MANY - 1];
	profile_collect(&profile, kept, 0);
	assert_int_equal(profile.n_processes, 3);
	assert_string_equal(profile_process_name(&profile, 1), "target");
	assert_string_equal(profile_process_of(&profile, &first), "child1");
	assert_string_equal(profile_process_of(&profile, &last), "child999");
	profile_deinit(&profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_locations_are_interned),
	    cmocka_unit_test(test_holders),
	    cmocka_unit_test(test_peers),
	    cmocka_unit_test(test_stacks_are_interned),
	    cmocka_unit_test(test_samples_are_counted_by_stack_thread_and_state),
	    cmocka_unit_test(test_a_goroutine_has_nothing_of_the_one_before),
	    cmocka_unit_test(test_waits_are_interned),
	    cmocka_unit_test(test_endless_waits),
	    cmocka_unit_test(test_only_running_time_is_cpu_time),
	    cmocka_unit_test(test_endless_stacks),
	    cmocka_unit_test(test_accounting_identity),
	    cmocka_unit_test(test_thread_names),
	    cmocka_unit_test(test_every_state_and_end_has_its_name),
	    cmocka_unit_test(test_names_of_processes_are_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
