// Stops at any moment, also between two looks of the kernel for work before the program runs on: a
// call that is to be entered again has not returned its number.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arch.h"
#include "tracee.h"

enum {
	BYTES = 300000, // more than a pipe holds
	STATUS = 7,
	MAX_ROUNDS = 100000,
	WANTED = 20,
	STEP_NS = 100, // of the time from a stop's end to the next
	MAX_STEPS = 200,
};

static void use_one_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static bool is_first_of_all(void)
{
	const struct sched_param first = {.sched_priority = 1};

	return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0;
}

static pid_t start_writer(int fds[2])
{
	static char bytes[BYTES];
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(fds[0]);
	// The first fills the pipe: the second has moved nothing yet when it is stopped.
	if (write(fds[1], bytes, 65536) != 65536)
		_exit(1);
	_exit(write(fds[1], bytes, BYTES) == BYTES ? STATUS : 1);
}

// Returns the pc at which it stood; 0: it has ended.
static uint64_t stop_once(pid_t pid)
{
	struct tracee_stop stop;
	struct registers registers;
	uint64_t tls;

	tracee_prepare();
	assert_int_equal(tracee_seize(pid, pid), TRACEE_OK);
	assert_int_equal(tracee_interrupt(pid), TRACEE_OK);
	if (tracee_wait(pid, &stop) != TRACEE_STOPPED)
		return 0;
	assert_true(tracee_registers(pid, &stop, &registers, &tls));
	tracee_release(pid, &stop);
	assert_false(tracee_is_in_rest(pid)); // nothing was moved, so nothing is left
	return registers.value[ARCH_NATIVE->pc];
}

static size_t read_all(int fd)
{
	char bytes[4096];
	size_t total = 0;
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		total += n;
	return total;
}

static void test_call_that_is_to_be_entered_again(void **state)
{
	int fds[2], status, n_set_back = 0;

	(void)state;
	use_one_cpu();
	if (!is_first_of_all())
		skip(); // the writer cannot be met where it has been set back
	prctl(PR_SET_TIMERSLACK, 1UL);
	assert_int_equal(pipe(fds), 0);
	const pid_t pid = start_writer(fds);
	close(fds[1]);
	usleep(10000);
	tracee_setup();
	const uint64_t first_pc = stop_once(pid);
	for (int i = 0; i < MAX_ROUNDS && n_set_back < WANTED; i++) {
		nanosleep(&(struct timespec){.tv_nsec = i % MAX_STEPS * STEP_NS}, NULL);
		const uint64_t pc = stop_once(pid);
		assert_true(pc != 0);
		n_set_back += pc < first_pc;
	}
	assert_int_equal(n_set_back, WANTED);
	assert_int_equal(read_all(fds[0]), 65536 + BYTES);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == STATUS);
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_call_that_is_to_be_entered_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
