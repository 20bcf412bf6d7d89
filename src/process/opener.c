// SPDX-License-Identifier: MIT
#include "opener.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "guard.h"
#include "listening.h"
#include "opener_serve.h"
#include "proc.h"

enum {
	SLICE_MS = 100,
	MAX_LEFT = 32,    // processes left behind that have not ended yet
	BUSY_FACTOR = 10, // for an opener that waits for a CPU, not for a server
	END_LOOKS = 100,
	END_LOOK_NS = 1000000,
};

// One for the whole process, like guard: libdw calls what asks for files, without a context.
static struct {
	pid_t owner; // the process that may use it
	pid_t pid;   // 0: none runs
	int fd;
	pid_t left[MAX_LEFT]; // something else holds them; they are killed
	size_t n_left;
} opener;

// Runs in the child. Leaves nothing of the parent's open: otherwise, whoever waits for the parent's
// end would wait for a child that is held.
static __attribute__((noreturn)) void run(int fd, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	if (fd != 0)
		dup2(fd, 0);
	closefrom(1);
	opener_serve(0);
	_exit(0);
}

// Reaps those left behind that have ended. The others end when they are let go; if we are gone,
// init reaps them.
static void collect_left(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < opener.n_left; i++)
		if (waitpid(opener.left[i], NULL, WNOHANG | __WALL) == 0)
			opener.left[kept++] = opener.left[i];
	opener.n_left = kept;
}

static bool start(void)
{
	const pid_t parent = getpid();
	int fds[2];

	collect_left();
	if (opener.n_left >= MAX_LEFT ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		return false;
	// No signal at its end: it would pass for a tracee's.
	const pid_t pid = (pid_t)syscall(SYS_clone, 0UL, 0UL, 0UL, 0UL, 0UL);
	if (pid == 0)
		run(fds[1], parent);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return false;
	}
	opener.owner = parent;
	opener.pid = pid;
	opener.fd = fds[0];
	return true;
}

static void leave_behind(void)
{
	close(opener.fd);
	kill(opener.pid, SIGKILL);
	opener.left[opener.n_left++] = opener.pid; // there was room when it was started
	opener.pid = 0;
	collect_left();
}

void opener_end(void)
{
	const struct timespec moment = {.tv_nsec = END_LOOK_NS};

	if (!opener.pid || opener.owner != getpid())
		return;
	close(opener.fd);
	kill(opener.pid, SIGKILL);
	for (int i = 0; i < END_LOOKS && waitpid(opener.pid, NULL, WNOHANG | __WALL) == 0; i++)
		nanosleep(&moment, NULL); // it may wait for a server
	opener.pid = 0;
}

static bool make_ready(void)
{
	if (opener.pid && opener.owner != getpid()) { // we are a child that has inherited it
		close(opener.fd);
		opener.pid = 0;
		opener.n_left = 0;
	}
	return opener.pid || start();
}

static bool user_wants_to_end(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
}

static bool has_replied(void)
{
	struct pollfd pollfd = {.fd = opener.fd, .events = POLLIN};

	return listening_poll(&pollfd, 1, SLICE_MS) > 0;
}

// Waits for a reply; returns 0 when there is one, else why not. The opener may wait for a CPU on a
// busy machine; that is not held against a server.
static int await(int64_t until_ns)
{
	const int64_t start_ns = clock_now_ns();
	struct proc_stat stat;

	for (;;) {
		if (has_replied())
			return 0;
		const int64_t now_ns = clock_now_ns();
		if (user_wants_to_end())
			return EINTR;
		if (now_ns > until_ns || now_ns - start_ns > BUSY_FACTOR * OPENER_WAIT_NS)
			return ETIMEDOUT;
		if (now_ns - start_ns > OPENER_WAIT_NS &&
		    !(proc_read_stat(-1, opener.pid, opener.pid, &stat) && stat.state == 'R'))
			return ETIMEDOUT;
	}
}

static bool receive(struct opener_reply *ret, int *ret_fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {ret, sizeof(*ret)};
	struct msghdr message = {
	    .msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = control.bytes,
	    .msg_controllen = sizeof(control.bytes),
	};

	*ret_fd = -1;
	if (recvmsg(opener.fd, &message, MSG_CMSG_CLOEXEC) != sizeof(*ret))
		return false;
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	return true;
}

static int ask(const struct opener_request *request, struct opener_reply *ret)
{
	const int64_t until_ns = clock_now_ns() + request->time_ns;
	int fd;

	if (!make_ready()) {
		errno = EAGAIN;
		return -1;
	}
	if (send(opener.fd, request, sizeof(*request), MSG_NOSIGNAL) != sizeof(*request)) {
		leave_behind();
		return -1;
	}
	do {
		int number = await(until_ns);
		if (number == 0 && !receive(ret, &fd))
			number = EIO;
		if (number != 0) {
			leave_behind();
			errno = number;
			return -1;
		}
	} while (ret->is_progress);
	if (ret->is_last)
		leave_behind();
	errno = ret->error;
	return fd;
}

// Blocks the signals of guarded work, which would leave in the middle of this (guard.h).
int opener_open(const struct opener_request *request, struct opener_reply *ret)
{
	sigset_t guard, mask;

	guard_fill_signals(&guard);
	sigprocmask(SIG_BLOCK, &guard, &mask);
	const int fd = ask(request, ret);
	const int number = errno;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	errno = number;
	return fd;
}

bool opener_ask(const struct opener_request *request, struct opener_reply *ret)
{
	opener_open(request, ret);
	return errno == 0;
}
