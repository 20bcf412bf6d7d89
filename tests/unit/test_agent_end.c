// SPDX-License-Identifier: MIT
// Samplers of the agent's end without harm: told once; what writes windows is killed at once, what
// samples after a grace, its supervisor after another, and a watcher of calls never.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent_end.h"
#include "supervise.h"
#include "window_files.h"

enum { PATIENCE_S = 60 };

enum part { SUPERVISOR, WORKER, WRITER, WATCHER, N_PARTS };

static int ends[N_PARTS]
               [2]; // pipes: a part keeps the second end of its own for as long as it lives

// A child is forked for each part.
static pid_t begin(enum part part, const char *name)
{
	const pid_t child = fork();

	if (child != 0)
		return child;
	prctl(PR_SET_NAME, name);
	alarm(PATIENCE_S);
	for (int i = 0; i < N_PARTS; i++) {
		close(ends[i][0]);
		if (i < (int)part)
			close(ends[i][1]);
	}
	return 0;
}

// Says who it is, and stays; says it again at each SIGTERM.
static __attribute__((noreturn)) void stay(enum part part)
{
	const pid_t pid = getpid();
	sigset_t set;
	int number;

	for (int i = (int)part + 1; i < N_PARTS; i++)
		close(ends[i][1]);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	while (write(ends[part][1], &pid, sizeof(pid)) == sizeof(pid))
		sigwait(&set, &number);
	_exit(1);
}

static void take_part_of_worker(void)
{
	if (begin(WRITER, WINDOW_WRITER_NAME) == 0)
		stay(WRITER);
	if (begin(WATCHER, SUPERVISE_WORKER_NAME) == 0)
		stay(WATCHER);
	stay(WORKER);
}

// Returns what the part says next: its pid. 0: it has ended.
static pid_t hear(enum part part)
{
	pid_t pid = 0;

	assert_true(read(ends[part][0], &pid, sizeof(pid)) >= 0);
	return pid;
}

static void start_sampler(pid_t pids[N_PARTS])
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < N_PARTS; i++)
		assert_int_equal(pipe(ends[i]), 0);
	if (begin(SUPERVISOR, "profiler") == 0) {
		if (begin(WORKER, SUPERVISE_WORKER_NAME) == 0)
			take_part_of_worker();
		stay(SUPERVISOR);
	}
	for (int i = 0; i < N_PARTS; i++) {
		close(ends[i][1]);
		pids[i] = hear(i);
		assert_true(pids[i] > 0);
	}
}

static void assert_lives(enum part part, pid_t pid)
{
	kill(pid, SIGTERM);
	assert_int_equal(hear(part), pid);
}

static void test_steps(void **state)
{
	struct agent_end end = {0};
	pid_t pids[N_PARTS];

	(void)state;
	start_sampler(pids);
	const pid_t supervisor = pids[SUPERVISOR];
	agent_end_press(&end, supervisor);
	agent_end_tell(&end, supervisor);
	assert_int_equal(hear(SUPERVISOR), supervisor);
	assert_false(agent_end_is_over_limit(&end));
	assert_lives(WRITER, pids[WRITER]);

	agent_end_over_limit(&end, supervisor);
	agent_end_press(&end, supervisor);
	assert_true(agent_end_is_over_limit(&end));
	assert_int_equal(hear(WRITER), 0);
	assert_lives(WORKER, pids[WORKER]);

	const int64_t since_ns = end.over_limit_ns;
	agent_end_over_limit(&end, supervisor);
	assert_true(end.over_limit_ns == since_ns);
	end.over_limit_ns -= AGENT_END_GRACE_NS;
	agent_end_press(&end, supervisor);
	assert_int_equal(hear(WORKER), 0);
	assert_lives(WATCHER, pids[WATCHER]);

	end.over_limit_ns -= AGENT_END_GRACE_NS;
	agent_end_press(&end, supervisor);
	assert_int_equal(hear(SUPERVISOR), 0); // it was told once
	assert_int_equal(waitpid(supervisor, NULL, 0), supervisor);
	assert_lives(WATCHER, pids[WATCHER]);
	kill(pids[WATCHER], SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
