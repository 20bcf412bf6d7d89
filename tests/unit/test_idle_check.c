// SPDX-License-Identifier: MIT
// idle_check and ready: whether the threads of a process, a child of ours, have slept on.
#include "unit.h"
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "idle_check.h"
#include "machine_load.h"
#include "sleeper.h"
#include "target.h"
#include "thread_sums.h"

enum { WORK_NS = 2000000 };

// A child that sleeps until it is told to work, and answers when it has used some CPU time.
struct child {
	int pid, tell_fd, told_fd;
	struct target target;
	struct thread_sums no_sums; // not everybody may ask for them
	struct machine_load load;   // its file is of the test's making
	struct idle_check check;
};

static void serve(int in, int out)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(in, &byte, 1) == 1) {
		const int64_t until_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) + WORK_NS;
		while (byte == 's' || clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) < until_ns)
			;
		if (write(out, &byte, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static void set_runnable(struct child *child, int n_others)
{
	char text[64];
	const int n = snprintf(text, sizeof(text), "0.00 0.00 0.00 %d/99 1\n", n_others + 1);

	assert_int_equal(ftruncate(child->load.fd, 0), 0);
	assert_int_equal(pwrite(child->load.fd, text, (size_t)n, 0), n);
}

static struct target_thread *only_thread(const struct child *child)
{
	assert_int_equal(child->target.n_threads, 1);
	return child->target.threads[0];
}

static void wait_until_blocked(const struct child *child)
{
	while (!sleeper_is_blocked(&child->target, only_thread(child)))
		usleep(1000);
}

static int start(void **state)
{
	static struct child child;
	int in[2], out[2];

	if (pipe(in) != 0 || pipe(out) != 0)
		return -1;
	child = (struct child){.no_sums = {.fd = -1}, .load = {.fd = memfd_create("loadavg", 0)}};
	child.load.n_cpus = 2;
	child.pid = fork();
	if (child.pid == 0) {
		close(in[1]);
		close(out[0]);
		serve(in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	child.tell_fd = in[1];
	child.told_fd = out[0];
	if (target_open(child.pid, false, &child.target))
		return -1;
	target_list_threads(&child.target, -1);
	wait_until_blocked(&child);
	idle_check_init(&child.check, &child.no_sums, &child.load);
	*state = &child;
	return 0;
}

static int stop(void **state)
{
	struct child *child = *state;

	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	target_close(&child->target);
	close(child->tell_fd);
	close(child->told_fd);
	close(child->load.fd);
	return 0;
}

static void have_it_work(struct child *child)
{
	char byte = 'w';

	assert_int_equal(write(child->tell_fd, &byte, 1), 1);
	assert_int_equal(read(child->told_fd, &byte, 1), 1);
	wait_until_blocked(child);
}

static enum idle_answer ask(struct child *child, long n_others)
{
	return idle_check_since_last(&child->check, &child->target, n_others);
}

static void test_by_the_clock(void **state)
{
	struct child *child = *state;

	set_runnable(child, 0);
	assert_int_equal(ask(child, 0), IDLE_NO); // nothing to compare with
	assert_int_equal(ask(child, 0), IDLE_YES);
	have_it_work(child);
	assert_int_equal(ask(child, 0), IDLE_NO);
	assert_int_equal(ask(child, 0), IDLE_YES);
}

// The clock does not move before the scheduler's next tick: while others want a CPU, one of them
// may be a thread of the process that has just begun to run.
static void test_others_leave_it_unsure(void **state)
{
	struct child *child = *state;

	set_runnable(child, 3);
	ask(child, 0);
	assert_int_equal(ask(child, 3), IDLE_UNSURE);
	assert_int_equal(ask(child, -1), IDLE_UNSURE); // the kernel does not say
	set_runnable(child, 0);
	assert_int_equal(ask(child, 3), IDLE_YES); // they have gone meanwhile
}

static void test_ready(void **state)
{
	struct child *child = *state;
	struct target_thread *thread = child->target.threads[0];
	char byte = 's';

	assert_false(woken_is_ready(&child->target, thread));
	assert_int_equal(write(child->tell_fd, &byte, 1), 1);
	while (sleeper_is_blocked(&child->target, thread))
		usleep(1000);
	assert_true(woken_is_ready(&child->target, thread));
	thread->sleep.stop_woke_it = true; // and not what it waited for
	assert_false(woken_is_ready(&child->target, thread));
}

static void test_may_be_ready(void **state)
{
	struct child *child = *state;
	struct target *target = &child->target;

	// All that want a CPU are threads that were found running.
	set_runnable(child, 2);
	assert_false(woken_may_be_ready(&child->load, target, 2, 2));
	// There are more: one may be a sleeper that was woken.
	assert_true(woken_may_be_ready(&child->load, target, 9, 2));
	set_runnable(child, 1);
	assert_true(woken_may_be_ready(&child->load, target, 1, 0));
	// They went while they were counted.
	set_runnable(child, 0);
	assert_false(woken_may_be_ready(&child->load, target, 1, 0));
	assert_true(woken_is_worth_looks(&child->load, target, 3));
	assert_false(woken_is_worth_looks(&child->load, target, 2)); // there is a CPU for each
	target->n_threads += WOKEN_MAX_LOOKS;
	assert_false(woken_is_worth_looks(&child->load, target, 3));
	target->n_threads -= WOKEN_MAX_LOOKS;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_by_the_clock, start, stop),
	    cmocka_unit_test_setup_teardown(test_others_leave_it_unsure, start, stop),
	    cmocka_unit_test_setup_teardown(test_ready, start, stop),
	    cmocka_unit_test_setup_teardown(test_may_be_ready, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
