// SPDX-License-Identifier: MIT
// Stops at any moment, also between two looks of the kernel for work before the program runs on: a
// call that is to be entered again has not returned its number.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "arch.h"
#include "proc.h"
#include "thread_signals.h"
#include "tracee.h"
#include "unit.h"

enum {
	PIPE_BYTES = 65536, // that it holds
	BYTES = 300000,     // more
	STATUS = 7,
	MAX_ROUNDS = 100000,
	WANTED = 20,
	WANTED_REFUSED = 200,
	STEP_NS = 100, // of the time from a stop's end to the next
	MAX_STEPS = 200,
};

static char bytes[BYTES];

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
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(fds[0]);
	// The first fills the pipe: the second has moved nothing yet when it is stopped.
	if (write(fds[1], bytes, PIPE_BYTES) != PIPE_BYTES)
		_exit(1);
	_exit(write(fds[1], bytes, BYTES) == BYTES ? STATUS : 1);
}

enum { NO_FD = 77, ANSWER = 3 };

static volatile sig_atomic_t n_wrong;

// Answers for the kernel, as a sandbox does.
static void answer(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)number;
	n_wrong += registers[REG_RAX] != info->si_syscall || registers[REG_RDX] != BYTES;
	registers[REG_RAX] = ANSWER;
}

// SIGSYS for each write to NO_FD.
static void refuse_writes(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 3),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NO_FD, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = 6, .filter = code};
	const struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};

	sigaction(SIGSYS, &action, NULL);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program))
		_exit(2);
}

static pid_t start_refused_writer(const int fds[2])
{
	struct pollfd end = {.fd = fds[0], .events = POLLIN};
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(fds[1], NO_FD);
	close(fds[1]);
	refuse_writes();
	while (poll(&end, 1, 0) == 0)
		for (int i = 0; i < 1000; i++)
			n_wrong += write(NO_FD, bytes, BYTES) != ANSWER;
	_exit(n_wrong ? 1 : STATUS);
}

// Returns the pc at which it stood, and in which call.
static uint64_t stop_once(pid_t pid, int64_t *ret_call)
{
	struct tracee_stop stop;
	struct registers registers;
	uint64_t tls;

	tracee_prepare();
	assert_int_equal(tracee_seize(pid, pid), TRACEE_OK);
	assert_int_equal(tracee_interrupt(pid), TRACEE_OK);
	assert_int_equal(tracee_wait(pid, &stop), TRACEE_STOPPED);
	assert_true(tracee_registers(pid, &stop, &registers, &tls));
	tracee_release(pid, &stop);
	assert_false(tracee_is_in_rest(pid)); // nothing was moved, so nothing is left
	*ret_call = stop.call;
	return registers.value[ARCH_NATIVE->pc];
}

static size_t read_all(int fd)
{
	char buffer[4096];
	size_t total = 0;
	ssize_t n;

	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		total += n;
	return total;
}

static void wait_a_little(int round)
{
	nanosleep(&(struct timespec){.tv_nsec = round % MAX_STEPS * STEP_NS}, NULL);
}

// With the CPU for itself, a process is met where it would hardly ever be else.
static void begin(int fds[2])
{
	use_one_cpu();
	if (!is_first_of_all())
		skip();
	prctl(PR_SET_TIMERSLACK, 1UL);
	assert_int_equal(pipe(fds), 0);
}

static void assert_ends_well(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == STATUS);
}

static bool is_asleep(pid_t pid)
{
	struct proc_stat stat;

	return proc_read_stat(-1, pid, pid, &stat) && stat.state == 'S';
}

static void test_call_that_is_to_be_entered_again(void **state)
{
	int fds[2], n_set_back = 0;
	int64_t call;

	(void)state;
	begin(fds);
	const pid_t pid = start_writer(fds);
	close(fds[1]);
	while (!is_asleep(pid)) // in its second write
		usleep(1000);
	const uint64_t first_pc = stop_once(pid, &call);
	for (int i = 0; i < MAX_ROUNDS && n_set_back < WANTED; i++) {
		wait_a_little(i);
		n_set_back += stop_once(pid, &call) < first_pc;
	}
	assert_int_equal(n_set_back, WANTED);
	assert_int_equal(read_all(fds[0]), PIPE_BYTES + BYTES);
	assert_ends_well(pid);
	close(fds[0]);
}

static void test_call_that_a_filter_refuses(void **state)
{
	int fds[2], n_refused = 0;
	int64_t call;

	(void)state;
	begin(fds);
	const pid_t pid = start_refused_writer(fds);
	usleep(10000);
	for (int i = 0; i < MAX_ROUNDS && n_refused < WANTED_REFUSED; i++) {
		wait_a_little(i);
		stop_once(pid, &call);
		n_refused += call == SYS_write;
	}
	assert_int_equal(n_refused, WANTED_REFUSED);
	assert_int_equal(write(fds[1], "", 1), 1);
	assert_ends_well(pid);
	close(fds[0]);
	close(fds[1]);
}

// One that nobody has reaped yet: the kernel says EPERM, as of a thread that may not be stopped.
static void test_thread_that_has_ended(void **state)
{
	siginfo_t info;
	const pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(STATUS);
	assert_int_equal(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(tracee_seize(pid, pid), TRACEE_GONE);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static volatile sig_atomic_t n_users, n_pipes;

static void count_signal(int number)
{
	n_users += number == SIGUSR1;
	n_pipes += number == SIGPIPE;
}

// Under a filter the rest of a call is written, not sent, and may raise a SIGPIPE.
static pid_t start_filtered_writer(int fds[2])
{
	const struct sigaction action = {.sa_handler = count_signal};
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(fds[0]);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGPIPE, &action, NULL);
	refuse_writes();
	const ssize_t n = write(fds[1], bytes, BYTES);
	_exit(n > 0 && n < BYTES && n_users == 1 && n_pipes == 0 ? STATUS : 1);
}

static void await_state(pid_t pid, char state)
{
	struct proc_stat stat = {0};

	while (proc_read_stat(-1, pid, pid, &stat) && stat.state != state)
		usleep(1000);
}

// Who reads from the other end of a socket leaves before a call that was cut is continued. Alone,
// the call would be short then, and raise no SIGPIPE; nor does it if another signal comes first.
static void test_signal_before_the_one_to_take_back(void **state)
{
	struct tracee_stop stop;
	struct registers registers;
	int fds[2];
	uint64_t tls;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	const pid_t pid = start_filtered_writer(fds);
	close(fds[1]);
	await_state(pid, 'S');
	assert_int_equal(tracee_seize(pid, pid), TRACEE_OK);
	assert_int_equal(tracee_interrupt(pid), TRACEE_OK);
	assert_int_equal(tracee_wait(pid, &stop), TRACEE_STOPPED);
	assert_true(tracee_registers(pid, &stop, &registers, &tls));
	tracee_release(pid, &stop);
	assert_true(tracee_is_in_rest(pid));
	await_state(pid, 't'); // at its entry
	close(fds[0]);
	tracee_serve();
	while (!thread_signals_await(pid, SIGPIPE))
		usleep(1000);
	await_state(pid, 't'); // at its end
	assert_int_equal(syscall(SYS_tgkill, pid, pid, SIGUSR1), 0);
	while (tracee_serve() > 0)
		usleep(1000);
	assert_ends_well(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_call_that_is_to_be_entered_again),
	    cmocka_unit_test(test_call_that_a_filter_refuses),
	    cmocka_unit_test(test_thread_that_has_ended),
	    cmocka_unit_test(test_signal_before_the_one_to_take_back),
	};

	tracee_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
