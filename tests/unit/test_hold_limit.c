// SPDX-License-Identifier: MIT
// hold_limit: who holds one thread for too long is killed; who holds many, or nobody, is not. No
// signal of anybody else is taken.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "hold_limit.h"

enum { MAX_NS = 50000000 };

// Computes for as much CPU time.
static void spin(int64_t ns)
{
	const int64_t end_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
		;
}

static void hold_one(void)
{
	hold_limit_enter();
	spin(100 * (int64_t)MAX_NS);
}

static void hold_in_handler(int number)
{
	(void)number;
	hold_limit_unblock();
	hold_one();
}

// In a handler of a signal that blocks all others.
static void hold_one_at_once(void)
{
	struct sigaction action = {.sa_handler = hold_in_handler};

	sigfillset(&action.sa_mask);
	sigaction(SIGCHLD, &action, NULL);
	raise(SIGCHLD);
}

static void hold_many(void)
{
	for (int i = 0; i < 100; i++) {
		hold_limit_enter();
		spin(MAX_NS / 20);
		hold_limit_leave();
	}
}

static void hold_nobody(void)
{
	hold_limit_enter();
	hold_limit_leave();
	spin(3 * (int64_t)MAX_NS);
}

static void hold_after_the_end(void)
{
	hold_limit_end();
	hold_limit_enter();
	spin(3 * (int64_t)MAX_NS);
}

static void reach_limit(void)
{
	kill(getpid(), SIGXCPU);
}

static void on_signal(int number)
{
	(void)number;
}

// Every signal does after the end what it did before the beginning.
static void give_signals_back(void)
{
	const struct sigaction action = {.sa_handler = on_signal};
	struct sigaction after;
	sigset_t all, before, mask;

	hold_limit_end();
	for (int number = 1; number < NSIG; number++)
		sigaction(number, &action, NULL);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigprocmask(SIG_SETMASK, NULL, &before);
	hold_limit_begin(MAX_NS);
	hold_limit_end();
	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int number = 1; number < NSIG; number++) {
		if (sigismember(&before, number) != sigismember(&mask, number))
			_exit(number);
		if (number != SIGKILL && number != SIGSTOP &&
		    sigaction(number, NULL, &after) == 0 && after.sa_handler != on_signal)
			_exit(number);
	}
}

// How a process ends that does this; its stderr's first bytes go to `told`.
static int end_of(void (*work)(void), rlim_t max_queued, char *told, size_t size)
{
	const struct rlimit queue = {max_queued, max_queued};
	int fds[2], status;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	const pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		if (max_queued != RLIM_INFINITY && setrlimit(RLIMIT_SIGPENDING, &queue) != 0)
			_exit(1);
		hold_limit_begin(MAX_NS);
		work();
		_exit(0);
	}
	close(fds[1]);
	const ssize_t n = read(fds[0], told, size - 1);
	assert_true(n >= 0);
	told[n] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_one(void **state)
{
	static const rlim_t limits[] = {RLIM_INFINITY, 0}; // 0: timer_create(2) fails
	char told[256];

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(limits) / sizeof(limits[0]); i++) {
		const int status =
		    end_of(i % 2 ? hold_one_at_once : hold_one, limits[i / 2], told, sizeof(told));
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		assert_non_null(strstr(told, "please report it\n"));
	}
}

static void test_others(void **state)
{
	static void (*const works[])(void) = {hold_many, hold_nobody, hold_after_the_end,
	                                      give_signals_back};
	char told[256];

	(void)state;
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		assert_int_equal(end_of(works[i], RLIM_INFINITY, told, sizeof(told)), 0);
		assert_string_equal(told, "");
		assert_int_equal(end_of(works[i], 0, told, sizeof(told)), 0);
		assert_string_equal(told, "");
	}
}

// A soft limit of CPU time (RLIMIT_CPU) ends the process as it would without us.
static void test_users_limit(void **state)
{
	char told[256];

	(void)state;
	const int status = end_of(reach_limit, RLIM_INFINITY, told, sizeof(told));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU);
	assert_string_equal(told, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one),
	    cmocka_unit_test(test_others),
	    cmocka_unit_test(test_users_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
