// SPDX-License-Identifier: MIT
#include "parting.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"
#include "proc.h"
#include "tracee.h"
#include "tracee_rescue.h"
#include "untrusted_file.h"

enum {
	MAX_CUT_S = 1, // from the wish to cut calls to their ends, except uninterruptible ones
	LOOK_NS = 500000000,
	MAX_GROUPS_TEXT = 8192,
};

static const int end_signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGALRM};

static struct parting {
	bool may_stay; // after the supervisor has ended
	_Atomic bool is_reported;
	_Atomic int status;
} * parting; // NULL: not shared

static volatile sig_atomic_t is_to_cut, is_late;

static ssize_t read_control_groups(pid_t pid, char *buffer, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -1 : read(fd, buffer, size);
}

// This is so if the parent is outside of the control group.
bool parting_ends_others(void)
{
	char own[MAX_GROUPS_TEXT], parents[MAX_GROUPS_TEXT];
	const pid_t parent = getppid();
	const ssize_t n = read_control_groups(getpid(), own, sizeof(own));

	if (parent == 0)
		return true;
	return n != read_control_groups(parent, parents, sizeof(parents)) ||
	       (n > 0 && memcmp(own, parents, (size_t)n) != 0);
}

void parting_share(void)
{
	void *memory =
	    mmap(NULL, sizeof(*parting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	parting = memory == MAP_FAILED ? NULL : memory;
	if (parting)
		parting->may_stay = !parting_ends_others();
}

bool parting_is_reported(int *ret_status)
{
	if (!parting || !parting->is_reported)
		return false;
	*ret_status = parting->status;
	return true;
}

static void on_end_signal(int number)
{
	is_to_cut = 1;
	if (number == SIGALRM)
		is_late = 1;
}

// Blocks the signals that end the wait, and SIGCHLD; *ret_open is the mask without them.
static void await_signals(sigset_t *ret_open)
{
	struct sigaction old, action = {.sa_handler = on_end_signal};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < array_size(end_signals); i++) {
		sigaddset(&set, end_signals[i]);
		sigaction(end_signals[i], NULL, &old);
		// What nohup(1) ignores stays ignored.
		if (old.sa_handler != SIG_IGN || end_signals[i] == SIGALRM)
			sigaction(end_signals[i], &action, NULL);
	}
	sigprocmask(SIG_BLOCK, &set, ret_open);
	for (size_t i = 0; i < array_size(end_signals); i++)
		sigdelset(ret_open, end_signals[i]);
	sigdelset(ret_open, SIGCHLD);
}

// Waits for a signal, whose handler serves stops (tracee_abandon_all), or until stderr takes a
// message, if that is awaited; not for ever, as no signal may tell that a thread is gone. True if
// stderr does.
static bool await_signal(const sigset_t *open, bool awaits_stderr)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	struct pollfd pollfd = {.fd = STDERR_FILENO, .events = POLLOUT};
	const int n = ppoll(&pollfd, awaits_stderr, &look, open);

	if (n == 0)
		tracee_look_again();
	return n > 0;
}

// Waits for the rests to end. If it stays alone, it waits as long for a CPU for them as the target
// does, though they are to be cut.
static void wait_for_rests(const sigset_t *open, bool stays)
{
	bool cut = false;

	while (is_late ? stays && tracee_count_rests(true) > 0 : tracee_count_rests(false) > 0) {
		if (!is_to_cut || (cut && !is_late)) {
			await_signal(open, false);
			continue;
		}
		if (!cut)
			tracee_cut_rests();
		cut = true;
		is_late = 0;
		alarm(MAX_CUT_S);
	}
	alarm(0);
}

// Waits for the end of the worker, or until it says that it needs nobody any more. If it was
// killed, puts right what it has left (tracee_rescue.h). The kernel reports its end after it has
// let its tracees go. If it is stopped, it may hold a thread, and goes on.
static __attribute__((noreturn)) void watch(pid_t worker)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	struct proc_stat stat;
	sigset_t all, wake;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	signal(SIGCHLD, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGUSR2);
	stay_behind();
	sigemptyset(&wake);
	sigaddset(&wake, SIGUSR2);
	while (getppid() == worker && sigtimedwait(&wake, NULL, &look) < 0)
		if (proc_read_stat(-1, worker, worker, &stat) && stat.state == 'T')
			kill(worker, SIGCONT);
	tracee_rescue();
	_exit(0);
}

static pid_t start_watcher(void)
{
	const pid_t worker = getpid();
	const pid_t watcher = parting && parting->may_stay ? fork() : -1;

	if (watcher == 0)
		watch(worker);
	return watcher;
}

// Tells the watcher that nobody is left, and lets it go on if it is stopped.
static void dismiss(pid_t watcher)
{
	int status;

	kill(watcher, SIGUSR2);
	while (waitpid(watcher, &status, WUNTRACED) == watcher && WIFSTOPPED(status))
		kill(watcher, SIGCONT);
}

static void report(pid_t supervisor, int status)
{
	parting->status = status;
	parting->is_reported = true;
	if (getppid() == supervisor)
		kill(supervisor, SIGCHLD);
}

// Serves stops as long as nobody takes the message.
static void announce(const sigset_t *open)
{
	size_t n_rests;

	while ((n_rests = tracee_count_rests(false)) > 0 && !is_to_cut)
		if (await_signal(open, true))
			break;
	if (n_rests == 0 || is_to_cut)
		return;
	fprintf(stderr,
	        "profiler: process %d stays until %zu interrupted system call%s of the target %s "
	        "completed; SIGTERM ends it now, and %s early\n",
	        (int)getpid(), n_rests, n_rests == 1 ? "" : "s", n_rests == 1 ? "has" : "have",
	        n_rests == 1 ? "the call returns" : "the calls return");
}

void parting_stay(pid_t supervisor, int status)
{
	sigset_t open;

	await_signals(&open);
	const pid_t watcher = tracee_count_rests(false) > 0 ? start_watcher() : -1;
	if (watcher > 0) {
		announce(&open);
		untrusted_file_end();
		stay_behind();
		prctl(PR_SET_PDEATHSIG, 0);
		report(supervisor, status);
	} else {
		is_to_cut = 1;
	}
	wait_for_rests(&open, watcher > 0);
	if (watcher > 0 && !is_late)
		dismiss(watcher);
}

void stay_behind(void)
{
	const int nothing = open("/dev/null", O_RDWR);

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(nothing, fd);
	closefrom(STDERR_FILENO + 1);
	if (chdir("/") != 0)
		return; // failed: then it keeps a directory from being unmounted
}
