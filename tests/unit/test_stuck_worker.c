// SPDX-License-Identifier: MIT
// A worker that waits in the kernel is killed for what it holds, or if it is to end while it
// samples, and not for a slow file when that is over; one that runs, for a copy without end.
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "holding.h"
#include "proc.h"
#include "stuck_worker.h"
#include "unit.h"

enum { N_LOOKS = 30, STEP_US = 1000, PATIENCE_S = 60, MAX_COPY_NS = 50000000 };

// In vfork, which no signal but SIGKILL ends while the child lives; that child ends with it.
// `held`: a thread that it stops before; 0: none.
static __attribute__((noreturn)) void wait_in_kernel(pid_t held)
{
	alarm(PATIENCE_S);
	if (held && (ptrace(PTRACE_SEIZE, held, NULL, NULL) != 0 ||
	             ptrace(PTRACE_INTERRUPT, held, NULL, NULL) != 0 ||
	             waitpid(held, NULL, __WALL) != held))
		_exit(1);
	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(PATIENCE_S);
		for (;;)
			pause();
	}
	_exit(1);
}

static pid_t start_worker(pid_t held)
{
	const pid_t worker = fork();
	struct proc_stat stat = {.state = '?'};

	if (worker == 0)
		wait_in_kernel(held);
	while (stat.state != 'D') {
		assert_true(proc_read_stat(-1, worker, worker, &stat));
		usleep(STEP_US);
	}
	return worker;
}

// Returns how many looks it takes until the worker is to be killed, as if the time between two had
// passed; N_LOOKS: it is not.
static int count_looks(struct stuck_worker *worker)
{
	for (int i = 0; i < N_LOOKS; i++) {
		worker->looked_ns = 0;
		if (stuck_worker_look(worker))
			return i;
	}
	return N_LOOKS;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_waits_for_others(void **state)
{
	struct stuck_worker worker = {.pid = start_worker(0)};

	(void)state;
	holding_share();
	assert_int_equal(count_looks(&worker), N_LOOKS);
	holding_note_over();
	worker.is_to_end = true;
	assert_int_equal(count_looks(&worker), N_LOOKS);
	holding_share();
	assert_int_equal(count_looks(&worker), 0);
	end(worker.pid);
}

static void test_holds(void **state)
{
	const pid_t held = fork();

	(void)state;
	if (held == 0) {
		alarm(PATIENCE_S);
		for (;;)
			pause();
	}
	struct stuck_worker worker = {.pid = start_worker(held)};
	assert_in_range(count_looks(&worker), 1, N_LOOKS - 1);
	assert_true(worker.is_told);
	end(worker.pid);
	end(held);
}

// Copies threads, each for as much CPU time; 0: one without end. Or, without one, computes.
static __attribute__((noreturn)) void copy(bool holds, int64_t each_ns)
{
	alarm(PATIENCE_S);
	for (;;) {
		const int64_t end_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + each_ns;
		if (holds)
			holding_begin();
		while (each_ns == 0 || clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
			;
		holding_end();
	}
}

// Looks at such a worker until it is to be killed, or has had several times the CPU time that one
// copy may have. Returns whether it is.
static bool is_killed_for_copies(bool holds, int64_t each_ns)
{
	struct stuck_worker worker = {.max_copy_ns = MAX_COPY_NS};
	bool is_killed = false;
	clockid_t clock;

	holding_share();
	worker.pid = fork();
	if (worker.pid == 0)
		copy(holds, each_ns);
	assert_int_equal(clock_getcpuclockid(worker.pid, &clock), 0);
	while (!is_killed && clock_read_ns(clock) < 8 * (int64_t)MAX_COPY_NS) {
		usleep(STEP_US);
		worker.looked_ns = 0;
		is_killed = stuck_worker_look(&worker);
	}
	end(worker.pid);
	return is_killed;
}

// One that ends neither by itself nor when it is told.
static void test_late(void **state)
{
	struct stuck_worker worker = {.pid = getpid(),
	                              .kill_ns = clock_now_ns() + 3600 * NS_PER_SECOND};

	(void)state;
	assert_false(stuck_worker_look(&worker));
	worker.kill_ns = clock_now_ns();
	assert_int_equal(count_looks(&worker), 0);
	assert_false(worker.is_told);
}

static void test_copies(void **state)
{
	(void)state;
	assert_true(is_killed_for_copies(true, 0));
	assert_false(is_killed_for_copies(true, MAX_COPY_NS / 20));
	assert_false(is_killed_for_copies(false, MAX_COPY_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_waits_for_others),
	    cmocka_unit_test(test_holds),
	    cmocka_unit_test(test_late),
	    cmocka_unit_test(test_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
