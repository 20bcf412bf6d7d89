// SPDX-License-Identifier: MIT
// What becomes of seized threads at instants that chance hardly ever brings about: one ends, is let
// go, or executes a program while another one is seized, before it is let go, or after sampling.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "events.h"
#include "held_time.h"
#include "instants.h"
#include "proc.h"
#include "run_stats.h"
#include "target.h"
#include "tracee.h"
#include "unit.h"

enum { MAX_S = 60 }; // who takes longer waits for ever

#define FAR_NS (20 * NS_PER_SECOND)
static struct events events;
static struct run_stats stats;
static struct held_time hold;

static void seize(pid_t tid, pid_t pid)
{
	tracee_prepare();
	assert_int_equal(tracee_seize(tid, pid), TRACEE_OK);
}

static void stop(pid_t tid, pid_t pid, struct tracee_stop *ret)
{
	seize(tid, pid);
	assert_int_equal(tracee_interrupt(tid), TRACEE_OK);
	assert_int_equal(tracee_wait(tid, ret), TRACEE_STOPPED);
}

static void let_go(pid_t tid)
{
	struct tracee_stop how;

	assert_int_equal(tracee_interrupt(tid), TRACEE_OK);
	assert_int_equal(tracee_wait(tid, &how), TRACEE_STOPPED);
	tracee_release(tid, &how);
}

// Takes what has been told so far.
static void forget_signals(void)
{
	events_child_came(&events);
	tracee_take_unserved();
}

// Waits as the sampler does, which does not wait if somebody is to be served.
static void wait_in_vain(void)
{
	const int64_t start_ns = clock_now_ns();

	held_time_wait(&hold, start_ns + FAR_NS);
	assert_true(clock_now_ns() - start_ns < FAR_NS);
}

static void await_served(void)
{
	for (int i = 0; i < MAX_MS && tracee_serve() > 0; i++)
		usleep(POLL_US);
	assert_int_equal(tracee_serve(), 0);
}

// --- Tests

static struct process process;
static struct sleeper sleeper;

static void execute_until_third_is_dead(void)
{
	process_tell(&process, EXECUTE);
	process_await_state(process.pid, process.tids[THIRD], 'Z');
}

// A thread is killed by an exec the moment that it is seized, and the handler is told of it before
// it knows the thread: the exec waits until the thread is reaped, and who seizes a thread of that
// process waits for the exec.
static void test_ends_as_it_is_seized(void **state)
{
	(void)state;
	struct tracee_stop how;

	sleeper_start(&sleeper);
	process_start(&process, false);
	seize(sleeper.pid, sleeper.pid); // or nobody would listen
	instant_after_seize = execute_until_third_is_dead;
	assert_int_equal(tracee_seize(process.tids[THIRD], process.pid), TRACEE_OK);
	alarm(MAX_S);
	if (tracee_seize(process.tids[SECOND], process.pid) == TRACEE_OK)
		tracee_interrupt(process.tids[SECOND]);
	alarm(0);
	assert_int_equal(tracee_wait(process.tids[THIRD], &how), TRACEE_EXITED);
	await_served();
	process_await(&process, process_runs_untraced);
	sleeper_wake(&sleeper);
	let_go(sleeper.pid);
	process_end(&process);
	sleeper_end(&sleeper);
}

static void wake_until_stopped(void)
{
	sleeper_wake(&sleeper);
	process_await_state(sleeper.pid, sleeper.pid, 't');
}

// The signal of a stop that comes while another thread is seized is gone, but not forgotten.
static void test_stops_while_another_is_seized(void **state)
{
	struct tracee_stop how;

	(void)state;
	sleeper_start(&sleeper);
	process_start(&process, false);
	seize(sleeper.pid, sleeper.pid);
	assert_int_equal(tracee_interrupt(sleeper.pid), TRACEE_OK);
	forget_signals();
	instant_after_seize = wake_until_stopped;
	assert_int_equal(tracee_seize(process.pid, process.pid), TRACEE_OK);
	wait_in_vain();
	assert_int_equal(tracee_poll(sleeper.pid, &how), TRACEE_STOPPED);
	tracee_release(sleeper.pid, &how);
	let_go(process.pid);
	process_end(&process);
	sleeper_end(&sleeper);
}

static void serve_sleeper(void *context)
{
	struct tracee_stop how;

	(void)context;
	if (tracee_poll(sleeper.pid, &how) == TRACEE_STOPPED)
		tracee_release(sleeper.pid, &how);
}

static void wake_until_let_go(void)
{
	struct proc_status status = {.tracer_pid = 1};

	sleeper_wake(&sleeper);
	while (status.tracer_pid != 0)
		assert_true(proc_read_status(sleeper.pid, &status));
}

// The one that the handler lets go meanwhile leaves nothing behind.
static void test_is_let_go_while_another_is_seized(void **state)
{
	(void)state;
	sleeper_start(&sleeper);
	process_start(&process, false);
	seize(sleeper.pid, sleeper.pid);
	assert_int_equal(tracee_interrupt(sleeper.pid), TRACEE_OK);
	instant_after_seize = wake_until_let_go;
	tracee_serve_at_once(serve_sleeper, NULL, true);
	assert_int_equal(tracee_seize(process.pid, process.pid), TRACEE_OK);
	tracee_serve_in_turn();
	let_go(process.pid);
	process_end(&process);
	sleeper_end(&sleeper);
}

// One that cannot be let go, as it was killed, is reaped, though its end was told before.
static void test_killed_before_it_is_let_go(void **state)
{
	struct tracee_stop how;

	(void)state;
	sleeper_start(&sleeper);
	sleeper_wake(&sleeper);
	stop(sleeper.pid, sleeper.pid, &how);
	kill(sleeper.pid, SIGKILL);
	process_await_state(sleeper.pid, sleeper.pid, 'Z');
	forget_signals();
	tracee_release(sleeper.pid, &how);
	assert_true(tracee_has_any());
	wait_in_vain();
	sleeper_end(&sleeper);
}

// Another thread, which nobody has seized, executes a program, and has the main thread's tid. To
// waitid(2) it is a child that runs.
static void test_exec_takes_tid_of_asked(void **state)
{
	struct tracee_stop how;

	(void)state;
	process_start(&process, false);
	seize(process.pid, process.pid);
	process_tell(&process, EXECUTE);
	process_await(&process, process_is_cat);
	assert_int_equal(tracee_interrupt(process.pid), TRACEE_GONE);
	assert_int_equal(tracee_poll(process.pid, &how), TRACEE_EXITED);
	process_end(&process);
}

static void test_exec_takes_tid_of_held(void **state)
{
	struct tracee_stop how;

	(void)state;
	process_start(&process, false);
	stop(process.pid, process.pid, &how);
	process_tell(&process, EXECUTE);
	process_await(&process, process_is_cat);
	tracee_release(process.pid, &how);
	assert_int_equal(tracee_serve(), 0);
	process_end(&process);
}

// Both were seized; the program is let go as the main thread, which it is by then.
static void test_exec_by_seized_thread(void **state)
{
	struct tracee_stop how;

	(void)state;
	process_start(&process, false);
	seize(process.pid, process.pid);
	seize(process.tids[SECOND], process.pid);
	process_tell(&process, EXECUTE);
	assert_int_equal(tracee_wait(process.pid, &how), TRACEE_STOPPED);
	assert_true(how.exec);
	tracee_release(process.pid, &how);
	assert_int_equal(tracee_poll(process.tids[SECOND], &how), TRACEE_EXITED);
	assert_int_equal(tracee_serve(), 0);
	process_await(&process, process_runs_untraced);
	process_end(&process);
}

// Who seizes the thread that executes a program waits for the exec. By then it has another tid, and
// will not stop by itself.
static void test_seized_as_exec_ends(void **state)
{
	struct tracee_stop how;

	(void)state;
	process_start(&process, true);
	process_tell(&process, EXECUTE);
	process_await_state(process.pid, process.tids[THIRD], 'Z');
	const pid_t helper = fork();
	if (helper == 0) {
		process_await_state(getppid(), getppid(), 'S');
		_exit(write(process.reap_fd, "", 1) != 1);
	}
	seize(process.tids[SECOND], process.pid);
	assert_int_equal(tracee_interrupt(process.tids[SECOND]), TRACEE_GONE);
	assert_int_equal(tracee_poll(process.tids[SECOND], &how), TRACEE_EXITED);
	await_served();
	process_await(&process, process_runs_untraced);
	waitpid(helper, NULL, 0);
	process_end(&process);
}

// What a seized thread clones may be traced, too, and stand: it is let go, though another thread is
// asked to stop and does not.
static void check_clone_with_tracer(bool is_killed)
{
	struct tracee_stop how;
	int about;

	process_start(&process, false);
	seize(process.tids[THIRD], process.pid);
	seize(process.tids[SECOND], process.pid);
	process_tell(&process, CLONE);
	const pid_t child = process_read_answer(&process, &about);
	process_await_state(child, child, 't');
	if (is_killed) {
		kill(child, SIGKILL);
		process_await_state(child, child, 'Z');
	}
	assert_int_equal(tracee_interrupt(process.tids[SECOND]), TRACEE_OK);
	assert_int_equal(tracee_wait(process.tids[SECOND], &how), TRACEE_STOPPED);
	tracee_release(process.tids[SECOND], &how);
	alarm(MAX_S);
	wait_in_vain();
	assert_int_equal(process_read_answer(&process, &about), 0);
	alarm(0);
	let_go(process.tids[THIRD]);
	process_end(&process);
}

static void test_clone_with_tracer(void **state)
{
	(void)state;
	check_clone_with_tracer(false);
}

// Its parent waits for the end of what it has cloned, which nobody but the tracer sees first.
static void test_killed_clone_with_tracer(void **state)
{
	(void)state;
	check_clone_with_tracer(true);
}

// Who knows a child by its pid may kill that later: another process must not get it meanwhile.
static void test_own_child_is_no_stray(void **state)
{
	const pid_t pid = (pid_t)syscall(SYS_clone, 0UL, 0UL, 0UL, 0UL, 0UL);

	(void)state;
	if (pid == 0)
		_exit(0);
	process_await_state(pid, pid, 'Z');
	tracee_stop_let_strays_go(tracee_is_seized);
	assert_int_equal(waitpid(pid, NULL, __WALL), pid);
}

// A tid that is listed twice is one thread's.
static void test_listed_twice(void **state)
{
	struct target target;

	(void)state;
	process_start(&process, false);
	instant_lists_twice = true;
	assert_null(target_open(process.pid, false, &target));
	assert_false(instant_lists_twice);
	assert_int_equal(target.n_threads, N_THREADS);
	target_close(&target);
	process_end(&process);
}

// Sampling ends while a thread that was asked is in exec, which takes long. From here on the
// handler lets everybody go: what is tested later begins there.
static void test_exec_goes_on_after_the_end(void **state)
{
	(void)state;
	process_start(&process, true);
	seize(process.tids[SECOND], process.pid);
	process_tell(&process, EXECUTE);
	process_await_state(process.pid, process.tids[THIRD], 'Z');
	process_await_state(process.pid, process.tids[SECOND], 'D');
	tracee_interrupt(process.tids[SECOND]);
	tracee_abandon_all();
	assert_int_equal(write(process.reap_fd, "", 1), 1);
	process_await(&process, process_runs_untraced);
	process_end(&process);
}

static void be_first(int priority)
{
	const struct sched_param first = {.sched_priority = priority};

	assert_int_equal(sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &first), 0);
}

// Begins to keep all whose priority is lower from the test's CPU. Returns the spinner's pid.
static pid_t start_spinner(void)
{
	const pid_t pid = fork();
	struct sched_param param = {0};

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_first(1);
		for (;;)
			continue;
	}
	while (sched_getparam(pid, &param) == 0 && param.sched_priority != 1)
		usleep(POLL_US);
	return pid;
}

static void await_full_pipe(int fd)
{
	int n = 0;

	while (n < fcntl(fd, F_GETPIPE_SZ)) {
		assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
		usleep(POLL_US);
	}
}

static void read_all(int fd, size_t n)
{
	static char bytes[LARGE];

	while (n > 0) {
		const ssize_t part = read(fd, bytes, n);
		assert_true(part > 0);
		n -= (size_t)part;
	}
}

// Sampling ends while a thread that was asked in the middle of a write waits for a CPU.
static void test_write_goes_on_after_the_end(void **state)
{
	cpu_set_t all, cpu;
	int about;

	(void)state;
	process_start(&process, false);
	process_tell(&process, WRITE);
	await_full_pipe(process.answer_fd);
	process_await_state(process.pid, process.tids[SECOND], 'S');
	CPU_ZERO(&cpu);
	sched_getaffinity(0, sizeof(all), &all);
	CPU_SET(sched_getcpu(), &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	sched_setaffinity(process.tids[SECOND], sizeof(cpu), &cpu);
	be_first(2);
	const pid_t spinner = start_spinner();
	seize(process.tids[SECOND], process.pid);
	tracee_interrupt(process.tids[SECOND]);
	process_await_state(process.pid, process.tids[SECOND], 'R');
	tracee_abandon_all();
	assert_int_equal(tracee_count_rests(false), 1);
	kill(spinner, SIGKILL);
	waitpid(spinner, NULL, 0);
	be_first(0);
	sched_setaffinity(0, sizeof(all), &all);
	alarm(MAX_S);
	read_all(process.answer_fd, LARGE);
	while (tracee_count_rests(false) > 0)
		usleep(POLL_US);
	alarm(0);
	assert_int_equal(process_read_answer(&process, &about), LARGE);
	process_end(&process);
}

static int begin(void **state)
{
	(void)state;
	events_init(&events);
	tracee_setup();
	held_time_init(&hold, &stats, &events);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	held_time_deinit(&hold);
	events_deinit(&events, true);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ends_as_it_is_seized),
	    cmocka_unit_test(test_stops_while_another_is_seized),
	    cmocka_unit_test(test_is_let_go_while_another_is_seized),
	    cmocka_unit_test(test_killed_before_it_is_let_go),
	    cmocka_unit_test(test_exec_takes_tid_of_asked),
	    cmocka_unit_test(test_exec_takes_tid_of_held),
	    cmocka_unit_test(test_exec_by_seized_thread),
	    cmocka_unit_test(test_seized_as_exec_ends),
	    cmocka_unit_test(test_clone_with_tracer),
	    cmocka_unit_test(test_killed_clone_with_tracer),
	    cmocka_unit_test(test_own_child_is_no_stray),
	    cmocka_unit_test(test_listed_twice),
	    cmocka_unit_test(test_exec_goes_on_after_the_end),
	    cmocka_unit_test(test_write_goes_on_after_the_end),
	};

	if (!tracee_stop_is_permitted())
		return 77;
	return cmocka_run_group_tests(tests, begin, finish);
}
