// SPDX-License-Identifier: MIT
// Threads that cannot stop for their rescue: nobody waits long for that, and they are let go when
// they stop.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "proc.h"
#include "rescues.h"
#include "syscall_rest.h"
#include "tracee_rescue.h"

enum { N = 4, LEAST_S = 20, STATUS = 7 };

// A process whose only thread is in vfork, which no stop can interrupt, until the pipe is closed.
static pid_t start_unstoppable(int read_fd, int write_fd)
{
	char byte;
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(write_fd);
	const pid_t child = vfork();
	if (child == 0) {
		const ssize_t n = read(read_fd, &byte, 1);
		_exit(n == 0 ? 0 : 1);
	}
	_exit(child > 0 ? STATUS : 1);
}

static bool is_in_vfork(pid_t pid)
{
	struct proc_stat stat;

	return proc_read_stat(-1, pid, pid, &stat) && stat.state == 'D';
}

static void test_nobody_is_held(void **state)
{
	struct syscall_rest rest = {0};
	pid_t pids[N];
	int fds[2], status;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	rescues_share();
	for (int i = 0; i < N; i++) {
		pids[i] = start_unstoppable(fds[0], fds[1]);
		while (!is_in_vfork(pids[i]))
			usleep(1000);
		rescues_keep(pids[i], &rest);
	}
	const int64_t start_ns = clock_now_ns();
	tracee_rescue();
	assert_true(clock_now_ns() - start_ns < LEAST_S * NS_PER_SECOND);
	for (int i = 0; i < N; i++)
		assert_true(is_in_vfork(pids[i]));
	close(fds[1]);
	for (int i = 0; i < N; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == STATUS);
	}
	close(fds[0]);
}

static void test_of_nobody(void **state)
{
	(void)state;
	rescues_share();
	assert_false(rescues_any());
	tracee_rescue();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_nobody_is_held),
	    cmocka_unit_test(test_of_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
