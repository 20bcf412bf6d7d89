// SPDX-License-Identifier: MIT
// thread_info: when names are read.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "memory.h"
#include "profile.h"
#include "target.h"
#include "thread_info.h"

enum { MS = 1000000 };

static struct profile profile;
static struct target_thread thread;
static struct target target;

// The test's own process is first seen in a tick that stands for the time since begin_ns.
static void first_see(int64_t begin_ns)
{
	prctl(PR_SET_NAME, "first");
	profile = (struct profile){0};
	thread = (struct target_thread){.tid = getpid()};
	target = (struct target){.pid = getpid()};
	*array_push(target.threads, target.n_threads, target.threads_capacity) = &thread;
	thread_info_begin_process(&profile, &target, begin_ns);
	thread_info_add(&profile, &target, target.n_threads, begin_ns);
}

static const char *name_at(int64_t now_ns)
{
	thread_info_refresh_name(&profile, &target, target.threads[0], now_ns);
	return profile_process_name(&profile, getpid());
}

static int free_all(void **state)
{
	(void)state;
	free(target.threads);
	profile_deinit(&profile);
	return 0;
}

// It is read again when the process is about twice as old as it was the last time.
static void test_renamed(void **state)
{
	(void)state;
	first_see(0);
	assert_string_equal(name_at(4 * MS), "first");
	prctl(PR_SET_NAME, "second");
	assert_string_equal(name_at(4 * MS), "first");
	assert_string_equal(name_at(5 * MS), "second");
	prctl(PR_SET_NAME, "third");
	assert_string_equal(name_at(14 * MS), "second");
	assert_string_equal(name_at(15 * MS), "third");
}

static void test_read_each_second_in_the_end(void **state)
{
	int64_t now_ns = 0;

	(void)state;
	first_see(0);
	for (; now_ns < 10000LL * MS; now_ns += MS)
		name_at(now_ns);
	prctl(PR_SET_NAME, "second");
	name_at(now_ns + 1000LL * MS);
	assert_string_equal(name_at(now_ns + 1000LL * MS), "second");
}

// The process was born in a pause of the sampler's: it may be young.
static void test_born_in_a_pause(void **state)
{
	(void)state;
	first_see(0);
	assert_string_equal(name_at(900LL * MS), "first");
	assert_string_equal(name_at(904LL * MS), "first");
	prctl(PR_SET_NAME, "second");
	assert_string_equal(name_at(920LL * MS), "second");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(test_renamed, free_all),
	    cmocka_unit_test_teardown(test_read_each_second_in_the_end, free_all),
	    cmocka_unit_test_teardown(test_born_in_a_pause, free_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
