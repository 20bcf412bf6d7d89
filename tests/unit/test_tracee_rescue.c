// SPDX-License-Identifier: MIT
// Threads that cannot stop for their rescue: nobody waits long for that, and they are let go when
// they stop.
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "proc.h"
#include "rescues.h"
#include "syscall_rest.h"
#include "tracee_rescue.h"
#include "unit.h"

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

// The rest of the call in which the thread is, as if it had been sent there.
static struct syscall_rest rest_of(pid_t pid)
{
	struct syscall_rest rest = {.caller = {.tid = pid, .pid = pid}};
	struct proc_syscall call;

	assert_true(proc_read_syscall(-1, pid, pid, &call) && !call.running);
	rest.entered.user.rsp = call.sp;
	syscall_set(&rest.entered, -1, call.nr);
	for (unsigned int i = 0; i < SYSCALL_ARGUMENTS; i++)
		syscall_set_argument(&rest.entered, i + 1, call.args[i]);
	rest.entered.user.rip = call.pc - syscall_code_bytes();
	return rest;
}

static void test_nobody_is_held(void **state)
{
	pid_t pids[N];
	int fds[2], status;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	rescues_share();
	for (int i = 0; i < N; i++) {
		pids[i] = start_unstoppable(fds[0], fds[1]);
		while (!is_in_vfork(pids[i]))
			usleep(1000);
		const struct syscall_rest rest = rest_of(pids[i]);
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

// A process that waits for a while in a call that would end with EINTR if it were interrupted.
static pid_t start_waiting(void)
{
	enum { WAIT_MS = 300 };
	struct epoll_event event;
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(epoll_wait(epoll_create1(0), &event, 1, WAIT_MS) == 0 ? STATUS : 1);
	return pid;
}

static bool is_asleep(pid_t pid)
{
	struct proc_stat stat;

	return proc_read_stat(-1, pid, pid, &stat) && stat.state == 'S';
}

// It is in another call by now, or its number belongs to another program.
static void test_who_has_left_is_left_alone(void **state)
{
	int status;

	(void)state;
	rescues_share();
	const pid_t pid = start_waiting();
	while (!is_asleep(pid))
		usleep(1000);
	struct syscall_rest rest = rest_of(pid);
	syscall_set_argument(&rest.entered, 1, UINT64_MAX);
	rescues_keep(pid, &rest);
	tracee_rescue();
	assert_false(rescues_any());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == STATUS);
}

static size_t n_seen;

static void see(int tid, struct syscall_rest *rest)
{
	assert_int_equal(rest->caller.tid, tid);
	n_seen++;
}

static void test_many_are_kept(void **state)
{
	enum { N_MANY = 1000, N_DROPPED = 10 };

	(void)state;
	rescues_share();
	for (int tid = 1; tid <= N_MANY; tid++) {
		const struct syscall_rest rest = {.caller = {.tid = tid}};
		rescues_keep(tid, &rest);
		rescues_keep(tid, &rest); // in place of itself
	}
	assert_int_equal(rescues_each(see), N_MANY);
	assert_int_equal(n_seen, N_MANY);
	for (int tid = 1; tid <= N_DROPPED; tid++)
		rescues_drop(tid);
	assert_int_equal(rescues_each(see), N_MANY - N_DROPPED);
	for (int tid = 1; tid <= N_MANY; tid++)
		rescues_drop(tid);
	assert_false(rescues_any());
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
	    cmocka_unit_test(test_who_has_left_is_left_alone),
	    cmocka_unit_test(test_many_are_kept),
	    cmocka_unit_test(test_of_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
