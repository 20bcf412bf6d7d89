// SPDX-License-Identifier: MIT
#include "top_live.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"
#include "exec_kept.h"
#include "memory.h"
#include "stayers.h"

enum { PIPE_BYTES = 1 << 20 };

// The terminal is the screen's alone.
static void set_aside(int told)
{
	const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (isatty(STDIN_FILENO))
		dup2(nothing, STDIN_FILENO);
	if (isatty(STDOUT_FILENO))
		dup2(nothing, STDOUT_FILENO);
	if (isatty(STDERR_FILENO))
		dup2(told, STDERR_FILENO);
}

// In the sampler's process.
static void follow_reader(int told, pid_t reader, const struct sigaction *child)
{
	sigaction(SIGCHLD, child, NULL);
	if (told >= 0)
		set_aside(told);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != reader)
		_exit(EXIT_STATUS_TARGET); // it is gone already
}

static struct error *no_process(void)
{
	return error_create(EXIT_STATUS_TARGET, "cannot start the sampler: %s", strerror(errno));
}

static void close_both(const int fds[2])
{
	close(fds[0]);
	close(fds[1]);
}

// Opens the pipe for the recording, the sockets for files, and the pipe for messages (NULL: none).
// False: there is no room for them.
static bool open_channels(int data[2], int files[2], int told[2])
{
	if (pipe2(data, O_CLOEXEC | O_NONBLOCK) != 0)
		return false;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, files) != 0) {
		close_both(data);
		return false;
	}
	if (told && pipe2(told, O_CLOEXEC | O_NONBLOCK) != 0) {
		close_both(data);
		close_both(files);
		return false;
	}
	return true;
}

struct error *
top_live_start(int (*sample)(void *context, int fd, int files, const struct exec_kept *kept),
               void *context, const sigset_t *mask, bool wraps, bool aside, struct top_live *ret)
{
	const pid_t reader = getpid();
	struct exec_kept kept = {.mask = *mask};
	int data[2], files[2], told[2] = {-1, -1};
	struct sigaction child;

	if (!open_channels(data, files, aside ? told : NULL))
		return no_process();
	if (wraps)
		exec_kept_take(mask, &kept);
	else // a command's orphans are not ours
		stayers_adopt();
	fcntl(data[1], F_SETPIPE_SZ, PIPE_BYTES); // as much as the user may have
	// If whoever started us ignored it, the sampler's exit status would never come.
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &child);
	*ret = (struct top_live){.pid = fork(), .fd = data[0], .files = files[0], .told = told[0]};
	if (ret->pid == 0) {
		close(data[0]);
		close(files[0]);
		follow_reader(told[1], reader, &child);
		_exit(sample(context, data[1], files[1], &kept));
	}
	exec_kept_deinit(&kept);
	close(data[1]);
	close(files[1]);
	if (told[1] >= 0)
		close(told[1]);
	return ret->pid < 0 ? no_process() : NULL;
}

void top_live_stop(const struct top_live *live)
{
	if (live->pid > 0)
		kill(live->pid, SIGTERM);
}

void top_live_close(struct top_live *live)
{
	if (live->fd >= 0)
		close(live->fd);
	if (live->files > 0)
		close(live->files);
	if (live->told >= 0)
		close(live->told);
	live->fd = live->told = -1;
	live->files = 0;
}

// Waits for the sampler, for its end or (WNOHANG) not at all. True: it has ended.
static bool reap(struct top_live *live, int flags)
{
	int status = 0;
	pid_t pid;

	if (live->pid <= 0)
		return true;
	do
		pid = waitpid(live->pid, &status, flags);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return false;
	live->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	live->pid = 0;
	return true;
}

bool top_live_has_ended(struct top_live *live)
{
	return reap(live, WNOHANG);
}

int top_live_finish(struct top_live *live)
{
	top_live_close(live);
	reap(live, 0);
	stayers_end();
	return live->status;
}
