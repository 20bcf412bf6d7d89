// SPDX-License-Identifier: MIT
#include "instants.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc.h"
#include "tracee.h"
#include "unit.h"

void (*instant_after_seize)(void);

long ptrace(enum __ptrace_request request, ...)
{
	va_list arguments;

	va_start(arguments, request);
	const pid_t pid = va_arg(arguments, pid_t);
	void *const address = va_arg(arguments, void *);
	void *const data = va_arg(arguments, void *);
	va_end(arguments);
	const long result = syscall(SYS_ptrace, request, pid, address, data);
	void (*const call)(void) = instant_after_seize;
	if (request == PTRACE_SEIZE && result == 0 && call) {
		instant_after_seize = NULL;
		call();
	}
	return result;
}

bool instant_lists_twice;

// Lists the first thread once more, at the end, as it is when another thread has got its tid.
ssize_t getdents64(int fd, void *buffer, size_t size)
{
	const ssize_t n = syscall(SYS_getdents64, fd, buffer, size);
	uint8_t *const entries = buffer;
	struct dirent64 *entry = buffer;

	for (ssize_t at = 0; instant_lists_twice && at < n; at += entry->d_reclen) {
		entry = (struct dirent64 *)(entries + at);
		if (entry->d_name[0] == '.')
			continue;
		instant_lists_twice = false;
		memcpy(entries + n, entry, entry->d_reclen);
		return n + entry->d_reclen;
	}
	return n;
}

static char state_of(pid_t pid, pid_t tid)
{
	struct proc_stat stat;

	return proc_read_stat(-1, pid, tid, &stat) ? stat.state : '-';
}

void process_await_state(pid_t pid, pid_t tid, char state)
{
	while (state_of(pid, tid) != state)
		usleep(POLL_US);
}

static struct {
	int order_fd, answer_fd;
	bool third_is_traced;
} own;

struct answer {
	int about, value;
};

static void answer(int about, int value)
{
	const struct answer answer = {about, value};

	if (write(own.answer_fd, &answer, sizeof(answer)) != sizeof(answer))
		_exit(1);
}

int process_read_answer(const struct process *process, int *ret_about)
{
	struct pollfd fd = {.fd = process->answer_fd, .events = POLLIN};
	struct answer answer;

	assert_int_equal(poll(&fd, 1, MAX_MS), 1);
	assert_int_equal(read(fd.fd, &answer, sizeof(answer)), sizeof(answer));
	*ret_about = answer.about;
	return answer.value;
}

// The child is traced from its birth if its parent is.
static void clone_with_tracer(void)
{
	const pid_t child =
	    (pid_t)syscall(SYS_clone, (unsigned long)CLONE_PTRACE | SIGCHLD, 0UL, 0UL, 0UL, 0UL);

	if (child == 0)
		syscall(SYS_exit, 0);
	answer(CLONE, child);
	waitpid(child, NULL, 0);
	answer(CLONE, 0);
}

static void write_much(void)
{
	static const char zeros[LARGE];

	answer(WRITE, (int)write(own.answer_fd, zeros, sizeof(zeros)));
}

static void *obey(void *context)
{
	char order;

	answer(SECOND, gettid());
	while (read(own.order_fd, &order, 1) == 1)
		if (order == EXECUTE)
			execlp("cat", "cat", (char *)NULL);
		else if (order == WRITE)
			write_much();
		else
			clone_with_tracer();
	return context;
}

static void *doze(void *context)
{
	if (own.third_is_traced)
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	answer(THIRD, gettid());
	for (;;)
		pause();
	return context;
}

static void live(int input_fd)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(input_fd, STDIN_FILENO);
	answer(MAIN, getpid());
	if (pthread_create(&thread, NULL, obey, NULL) != 0 ||
	    pthread_create(&thread, NULL, doze, NULL) != 0)
		_exit(1);
	for (;;)
		pause();
}

// The process's parent, which is told when to collect the third thread's death.
static void trace_third(int input_fd, int reap_fd)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fork() == 0)
		live(input_fd);
	if (read(reap_fd, &byte, 1) == 1)
		waitpid(-1, NULL, __WALL);
	for (;;)
		pause();
}

void process_start(struct process *process, bool third_is_traced)
{
	int orders[2], answers[2], input[2], reap[2], about;

	assert_true(pipe2(orders, O_CLOEXEC) == 0 && pipe2(answers, O_CLOEXEC) == 0 &&
	            pipe2(input, O_CLOEXEC) == 0 && pipe2(reap, O_CLOEXEC) == 0);
	own.order_fd = orders[0];
	own.answer_fd = answers[1];
	own.third_is_traced = third_is_traced;
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0 && third_is_traced)
		trace_third(input[0], reap[0]);
	if (child == 0)
		live(input[0]);
	*process = (struct process){
	    .tracer = third_is_traced ? child : 0,
	    .order_fd = orders[1],
	    .answer_fd = answers[0],
	    .input_fd = input[1],
	    .reap_fd = reap[1],
	};
	close(orders[0]);
	close(answers[1]);
	close(input[0]);
	close(reap[0]);
	for (int i = 0; i < N_THREADS; i++) {
		const int value = process_read_answer(process, &about);
		process->tids[about] = value;
	}
	process->pid = process->tids[MAIN];
}

void process_tell(const struct process *process, enum order order)
{
	const char byte = (char)order;

	assert_int_equal(write(process->order_fd, &byte, 1), 1);
}

bool process_is_cat(const struct process *process)
{
	char name[PROC_NAME_SIZE];

	return proc_read_name(process->pid, process->pid, name) && strcmp(name, "cat") == 0;
}

bool process_runs_untraced(const struct process *process)
{
	struct proc_status status;

	return proc_read_status(process->pid, &status) && status.tracer_pid == 0 &&
	       status.state != 't' && process_is_cat(process);
}

void process_await(const struct process *process, bool (*is)(const struct process *process))
{
	for (int i = 0; i < MAX_MS && !is(process); i++)
		usleep(POLL_US);
	assert_true(is(process));
}

void process_end(struct process *process)
{
	const pid_t child = process->tracer ? process->tracer : process->pid;

	kill(process->pid, SIGKILL);
	kill(child, SIGKILL);
	while (waitpid(child, NULL, __WALL) > 0)
		continue;
	close(process->order_fd);
	close(process->answer_fd);
	close(process->input_fd);
	close(process->reap_fd);
	assert_false(tracee_has_any());
}

void sleeper_start(struct sleeper *sleeper)
{
	int fds[2];
	char byte;

	assert_int_equal(pipe(fds), 0);
	sleeper->pid = fork();
	assert_true(sleeper->pid >= 0);
	if (sleeper->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[1]);
		if (vfork() == 0)
			_exit(read(fds[0], &byte, 1) != 0);
		for (;;)
			pause();
	}
	close(fds[0]);
	sleeper->wake_fd = fds[1];
	process_await_state(sleeper->pid, sleeper->pid, 'D');
}

void sleeper_wake(const struct sleeper *sleeper)
{
	assert_int_equal(write(sleeper->wake_fd, "", 1), 1);
	close(sleeper->wake_fd);
}

void sleeper_end(const struct sleeper *sleeper)
{
	kill(sleeper->pid, SIGKILL);
	waitpid(sleeper->pid, NULL, 0);
	assert_false(tracee_has_any());
}
