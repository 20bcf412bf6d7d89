// SPDX-License-Identifier: MIT
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "command_file.h"
#include "diagnose.h"
#include "error.h"
#include "events.h"
#include "memory.h"
#include "privileged_exec.h"
#include "stack_limit.h"
#include "supervise.h"

enum {
	WAIT_LOOK_NS = 10000000,
	// While the command is stopped and the supervisor is not, tell it again after this time.
	TELL_AGAIN_NS = 300000000,
};

// Waits, in the child, for the go, then becomes the command; reports errno if it cannot.
__attribute__((noreturn)) static void run_child(char *const command[], const struct events *events,
                                                const struct origin *origin, int go_fd,
                                                int error_fd)
{
	_cleanup_free_ char *path = command_file_find(command[0]);
	char byte;

	prctl(PR_SET_NAME, "profiler"); // not a worker's name (supervise.h)
	// It was closed without a byte: the profiler could not trace us, or died.
	if (read(go_fd, &byte, 1) != 1)
		_exit(EXIT_STATUS_TARGET);
	events_restore(events, origin);
	stack_limit_restore();
	exec_kept_give(&origin->kept);
	// execvp(3) has a shell execute what the kernel does not.
	if (path && command_file_is_binary(path))
		execv(path, command);
	else
		execvp(command[0], command);
	const int error = errno;
	ssize_t written = write(error_fd, &error, sizeof(error));
	(void)written;
	_exit(error == ENOENT ? EXIT_STATUS_NOT_FOUND : EXIT_STATUS_CANNOT_RUN);
}

static struct error *cannot_run(const char *command, int error)
{
	_cleanup_free_ char *path = command_file_find(command);
	_cleanup_free_ char *lacks = path && error == ENOENT ? command_file_lacks(path) : NULL;

	if (lacks)
		return error_create(EXIT_STATUS_NOT_FOUND, "%s: cannot be run: %s", command, lacks);
	if (error == ENOENT)
		return error_create(EXIT_STATUS_NOT_FOUND, "%s: command not found", command);
	return error_create(EXIT_STATUS_CANNOT_RUN, "%s: cannot be run: %s", command,
	                    strerror(error));
}

static struct error *cannot_start(const char *command)
{
	return error_create(EXIT_STATUS_TARGET, "%s: cannot be started: %s%s", command,
	                    strerror(errno),
	                    errno == EMFILE ? ": raise the limit (ulimit -n)" : "");
}

// Waits from the go to the stop after exec; passes on signals that come in between.
static bool wait_for_exec(struct launch *launch)
{
	for (;;) {
		struct tracee_stop stop;
		if (tracee_wait(launch->pid, &stop) != TRACEE_STOPPED) {
			launch->ended = true;
			launch->exit_status = stop.exit_status;
			return false;
		}
		launch->stop = stop;
		if (stop.exec)
			return true;
		tracee_continue(launch->pid, &stop);
	}
}

// Waits for the child's exec, or its failure; it reports a failure through a pipe that exec closes.
static struct error *start_untraced(const char *command, int go_fd, int error_fd)
{
	int error = 0;

	if (write(go_fd, "", 1) != 1)
		return cannot_run(command, errno);
	if (read(error_fd, &error, sizeof(error)) == sizeof(error))
		return cannot_run(command, error);
	return NULL;
}

static struct error *trace_child(struct launch *launch, const char *command, int go_fd,
                                 int error_fd)
{
	int error = 0;

	if (launch->untraced)
		return start_untraced(command, go_fd, error_fd);
	if (tracee_seize(launch->pid, launch->pid) != TRACEE_OK)
		return diagnose_denied(launch->pid);
	if (write(go_fd, "", 1) != 1)
		return cannot_run(command, errno);
	launch->held = wait_for_exec(launch);
	if (launch->held)
		return NULL;
	if (read(error_fd, &error, sizeof(error)) == sizeof(error))
		return cannot_run(command, error);
	return error_create(EXIT_STATUS_TARGET, "%s: ended before its first instruction", command);
}

struct error *launch_start(char *const command[], const struct events *events,
                           const struct origin *origin, struct launch *ret)
{
	_cleanup_close_ int go_read = -1, go_write = -1, error_read = -1, error_write = -1;
	int go[2], errors[2];
	struct launch launch = {
	    .origin = origin,
	    .untraced = privileged_exec_is_withheld() && privileged_exec_would_gain(command[0]),
	};

	if (pipe2(go, O_CLOEXEC) != 0)
		return cannot_start(command[0]);
	go_read = go[0], go_write = go[1];
	if (pipe2(errors, O_CLOEXEC) != 0)
		return cannot_start(command[0]);
	error_read = errors[0], error_write = errors[1];
	exec_kept_prepare(&origin->kept);
	launch.pid = fork();
	if (launch.pid < 0)
		return cannot_start(command[0]);
	if (launch.pid == 0) {
		close(go_write); // if open here, the parent's death would go unnoticed
		run_child(command, events, origin, go_read, error_write);
	}
	events_sharpen();
	supervise_leave_group(origin);
	close(error_write);
	error_write = -1;
	tracee_watch_child(launch.pid);
	struct error *error = trace_child(&launch, command[0], go_write, error_read);
	if (error) {
		close(go_write);
		go_write = -1;
		launch_wait(&launch);
		return error;
	}
	supervise_note_command(origin, launch.pid);
	*ret = launch;
	return NULL;
}

void launch_release(struct launch *launch)
{
	if (!launch->held)
		return;
	launch->held = false;
	tracee_release(launch->pid, &launch->stop);
}

// Peeks at the command's state (WNOWAIT): taking a ptrace-stop here would hide it from tracee, and
// leave the thread stopped. With WNOHANG, ret->si_pid is 0 if nothing has
// happened yet.
static int look_at_state(const struct launch *launch, int flags, siginfo_t *ret)
{
	int result;

	do {
		*ret = (siginfo_t){0};
		result = waitid(P_PID, launch->pid, ret, flags | WEXITED | WNOWAIT);
	} while (result < 0 && errno == EINTR);
	return result;
}

static bool is_end(const siginfo_t *info)
{
	return info->si_code == CLD_EXITED || info->si_code == CLD_KILLED ||
	       info->si_code == CLD_DUMPED;
}

// Shows the shell that waits for the profiler what it would see of the command. Tells it again if
// the supervisor was continued and the command has stopped once more, between two looks.
static void note_stop(struct launch *launch, int stop_signal)
{
	const bool is_new = !stop_signal != !launch->stop_signal;
	const int64_t now_ns = clock_now_ns();

	if (!is_new && (!stop_signal || supervise_is_stopped(launch->origin)))
		launch->told_ns = now_ns;
	if (!is_new && now_ns - launch->told_ns < TELL_AGAIN_NS)
		return;
	launch->stop_signal = stop_signal;
	launch->told_ns = now_ns;
	supervise_follow(launch->origin, launch->pid, stop_signal);
}

// Reaping, the kernel drops what /proc has of the command (proc_invalidate_siblings_dcache), and
// tries until whoever still uses that has let go. On the only CPU nobody can beside a realtime
// priority: that took 0.9 s, until the kernel lent others the CPU. Sampling is over, so it is not
// needed.
static void give_way(void)
{
	if ((sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_FIFO)
		sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &(struct sched_param){0});
}

// Takes the command's end, if it has ended.
static bool take_end(struct launch *launch)
{
	pid_t pid;

	if (!launch->ended)
		launch->ended = tracee_child_has_ended(&launch->exit_status);
	if (launch->ended)
		return true;
	give_way();
	do
		pid = waitpid(launch->pid, &launch->exit_status, WNOHANG);
	while (pid < 0 && errno == EINTR);
	if (pid < 0) // the signal handler has just reaped it
		launch->ended = tracee_child_has_ended(&launch->exit_status) || errno == ECHILD;
	else
		launch->ended = pid == launch->pid;
	return launch->ended;
}

// Looks once at the command; true if it has ended.
static bool follow(struct launch *launch, int flags)
{
	siginfo_t info;

	if (!launch->ended && look_at_state(launch, flags, &info) == 0) {
		// While it is traced its stops are ours, and between two of them it seems to run.
		if (info.si_pid == 0 && !tracee_has_any())
			note_stop(launch, 0);
		else if (info.si_code == CLD_STOPPED)
			note_stop(launch, info.si_status);
		if (info.si_pid == 0 || !is_end(&info))
			return false;
	}
	if (!take_end(launch))
		return false;
	supervise_note_command(launch->origin, 0);
	note_stop(launch, 0); // the command may have been killed while it was stopped
	return true;
}

bool launch_poll(struct launch *launch)
{
	return follow(launch, WNOHANG | WSTOPPED);
}

void launch_wait(struct launch *launch)
{
	const struct timespec moment = {.tv_nsec = WAIT_LOOK_NS};

	// A look that waits would return at once for a command that is still stopped.
	while (!follow(launch, launch->stop_signal ? WSTOPPED | WNOHANG : WSTOPPED))
		nanosleep(&moment, NULL);
}

int launch_exit_code(const struct launch *launch)
{
	if (WIFSIGNALED(launch->exit_status))
		return 128 + WTERMSIG(launch->exit_status);
	return WEXITSTATUS(launch->exit_status);
}
