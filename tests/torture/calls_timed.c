// SPDX-License-Identifier: MIT
// Calls with a timeout, for which nothing ever comes: they may end with it only, and on time.
#include <alloca.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>

#include "torture.h"

#define JIFFY_MS 11 // one more than the longest that a kernel is built with

// Different lengths, so that ticks meet the calls at all points.
static long choose_ms(void)
{
	static const long lengths[] = {3, 7, 13, 29};

	return lengths[random_below(4)];
}

static struct timespec timespec_of(long ms)
{
	return (struct timespec){ms / 1000, ms % 1000 * 1000000};
}

// A call is to return `wanted`, or -1 with that errno, after ms milliseconds.
#define EXPECT(kind, ms, early_ms, call, good)                                                     \
	do {                                                                                       \
		const struct beginning begun = begin_call();                                       \
		const long result = (call);                                                        \
		if (!(good))                                                                       \
			fault(kind, "returned", result);                                           \
		else                                                                               \
			note_time(kind, &begun, (double)(ms), early_ms);                           \
	} while (0)

#define FAILED(number) (result == -1 && errno == (number))

FRAME int own_epoll(void)
{
	static _Thread_local int fd;

	return fd ? fd : (fd = epoll_create1(0));
}

FRAME void time_epoll_wait(struct kind *kind)
{
	struct epoll_event event;
	const long ms = choose_ms();

	EXPECT(kind, ms, 0, epoll_wait(own_epoll(), &event, 1, (int)ms), result == 0);
}

FRAME void time_epoll_pwait(struct kind *kind)
{
	struct epoll_event event;
	const long ms = choose_ms();
	sigset_t set;

	sigemptyset(&set);
	EXPECT(kind, ms, 0, epoll_pwait(own_epoll(), &event, 1, (int)ms, &set), result == 0);
}

FRAME void time_epoll_pwait2(struct kind *kind)
{
	struct epoll_event event;
	const long ms = choose_ms();
	const struct timespec length = timespec_of(ms);

	EXPECT(kind, ms, 0, syscall(441, own_epoll(), &event, 1, &length, NULL, 8), result == 0);
}

FRAME void time_poll(struct kind *kind)
{
	const long ms = choose_ms();

	EXPECT(kind, ms, 0, poll(NULL, 0, (int)ms), result == 0);
}

FRAME void time_ppoll(struct kind *kind)
{
	const long ms = choose_ms();
	const struct timespec length = timespec_of(ms);

	EXPECT(kind, ms, 0, ppoll(NULL, 0, &length, NULL), result == 0);
}

FRAME void time_select(struct kind *kind)
{
	const long ms = choose_ms();
	struct timeval length = {0, ms * 1000};

	EXPECT(kind, ms, 0, select(0, NULL, NULL, NULL, &length), result == 0);
}

FRAME void time_nanosleep(struct kind *kind)
{
	const long ms = choose_ms();
	const struct timespec length = timespec_of(ms);

	EXPECT(kind, ms, 0, nanosleep(&length, NULL), result == 0);
}

FRAME void time_clock_nanosleep(struct kind *kind)
{
	const long ms = choose_ms();
	const struct timespec length = timespec_of(ms);

	EXPECT(kind, ms, 0, clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL), result == 0);
}

// Of a size that the code computes: only a stop would show this function's callers.
#define GROW_FRAME()                                                                               \
	do {                                                                                       \
		char *space = alloca((size_t)(16 + 16 * random_below(8)));                         \
		__asm__ volatile("" : : "r"(space) : "memory");                                    \
	} while (0)

FRAME void time_poll_computed(struct kind *kind)
{
	const long ms = choose_ms();

	GROW_FRAME();
	EXPECT(kind, ms, 0, poll(NULL, 0, (int)ms), result == 0);
}

FRAME void time_futex_computed(struct kind *kind)
{
	const long ms = choose_ms();
	const struct timespec length = timespec_of(ms);
	int word = 0;

	GROW_FRAME();
	EXPECT(kind, ms, 0, syscall(SYS_futex, &word, FUTEX_WAIT, 0, &length), FAILED(ETIMEDOUT));
}

FRAME void time_nanosleep_computed(struct kind *kind)
{
	const long ms = choose_ms();
	const struct timespec length = timespec_of(ms);

	GROW_FRAME();
	EXPECT(kind, ms, 0, nanosleep(&length, NULL), result == 0);
}

FRAME void time_clock_nanosleep_computed(struct kind *kind)
{
	const long ms = choose_ms();
	const struct timespec length = timespec_of(ms);

	GROW_FRAME();
	EXPECT(kind, ms, 0, clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL), result == 0);
}

FRAME void time_futex(struct kind *kind)
{
	static int word;
	const long ms = choose_ms();
	const struct timespec length = timespec_of(ms);

	EXPECT(kind, ms, 0, syscall(SYS_futex, &word, FUTEX_WAIT, 0, &length, NULL, 0),
	       FAILED(ETIMEDOUT));
}

// Until a time that is counted from after the look at the clock which the wait is judged by.
static int wait_for_condition(long ms)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ms * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&mutex);
	const int result = pthread_cond_timedwait(&condition, &mutex, &until);
	pthread_mutex_unlock(&mutex);
	return result;
}

FRAME void time_condition(struct kind *kind)
{
	const long ms = choose_ms();

	EXPECT(kind, ms, 1, wait_for_condition(ms), result == ETIMEDOUT);
}

FRAME void time_semtimedop(struct kind *kind)
{
	static int id = -1;
	const long ms = choose_ms();
	const struct timespec length = timespec_of(ms);
	struct sembuf down = {0, -1, 0};

	if (id < 0)
		id = semget(IPC_PRIVATE, 1, 0600);
	EXPECT(kind, ms, JIFFY_MS, semtimedop(id, &down, 1, &length), FAILED(EAGAIN));
	if (is_over())
		semctl(id, 0, IPC_RMID);
}

FRAME void time_sigtimedwait(struct kind *kind)
{
	const long ms = choose_ms();
	const struct timespec length = timespec_of(ms);
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGRTMIN + 5);
	EXPECT(kind, ms, 0, sigtimedwait(&wanted, NULL, &length), FAILED(EAGAIN));
}

FRAME void time_io_getevents(struct kind *kind)
{
	static aio_context_t context;
	const long ms = choose_ms();
	struct timespec length = timespec_of(ms);
	struct io_event event;

	if (!context && syscall(SYS_io_setup, 8, &context)) {
		sleep_ms(100); // not permitted here
		return;
	}
	EXPECT(kind, ms, 0, syscall(SYS_io_getevents, context, 1, 1, &event, &length), result == 0);
}

FRAME void time_io_uring_enter(struct kind *kind)
{
	static int fd;
	const long ms = choose_ms();
	struct timespec length = timespec_of(ms);
	struct io_uring_getevents_arg more = {.ts = (uintptr_t)&length};

	if (!fd) {
		struct io_uring_params params = {0};
		fd = (int)syscall(SYS_io_uring_setup, 4, &params);
	}
	if (fd < 0) {
		sleep_ms(100); // not permitted here
		return;
	}
	EXPECT(kind, ms, 0,
	       syscall(SYS_io_uring_enter, fd, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
	               &more, sizeof(more)),
	       FAILED(ETIME));
}

static void set_timeout(int fd, int option, long ms)
{
	const struct timeval length = {0, ms * 1000};

	setsockopt(fd, SOL_SOCKET, option, &length, sizeof(length));
}

FRAME void time_recv(struct kind *kind)
{
	static int fds[2];
	const long ms = choose_ms();
	char byte;

	if (!fds[1])
		socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
	set_timeout(fds[0], SO_RCVTIMEO, ms);
	EXPECT(kind, ms, JIFFY_MS, recv(fds[0], &byte, 1, 0), FAILED(EAGAIN));
}

FRAME void time_read(struct kind *kind)
{
	static int fds[2];
	const long ms = choose_ms();
	char byte;

	if (!fds[1])
		socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
	set_timeout(fds[0], SO_RCVTIMEO, ms);
	EXPECT(kind, ms, JIFFY_MS, read(fds[0], &byte, 1), FAILED(EAGAIN));
}

// A part has come when the time is up: that is returned, and no later.
FRAME void time_recv_waitall(struct kind *kind)
{
	static int fds[2];
	const long ms = choose_ms();
	char bytes[100];

	if (!fds[1])
		socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
	set_timeout(fds[0], SO_RCVTIMEO, ms);
	if (write(fds[1], bytes, 10) != 10)
		die("write");
	EXPECT(kind, ms, JIFFY_MS, recv(fds[0], bytes, sizeof(bytes), MSG_WAITALL), result == 10);
}

FRAME void time_send(struct kind *kind)
{
	static int fds[2];
	static char bytes[4096];
	const long ms = choose_ms();

	if (!fds[1]) {
		socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
		while (send(fds[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			continue;
	}
	set_timeout(fds[0], SO_SNDTIMEO, ms);
	EXPECT(kind, ms, JIFFY_MS, send(fds[0], bytes, sizeof(bytes), 0), FAILED(EAGAIN));
}

FRAME void time_accept(struct kind *kind)
{
	static int fd;
	const long ms = choose_ms();
	struct sockaddr_un name;
	socklen_t size;

	if (!fd)
		fd = listen_somewhere(5, &name, &size);
	set_timeout(fd, SO_RCVTIMEO, ms);
	EXPECT(kind, ms, JIFFY_MS, accept(fd, NULL, NULL), FAILED(EAGAIN));
}

// The queue of the listener is full.
FRAME void time_connect(struct kind *kind)
{
	static struct sockaddr_un name;
	static socklen_t size;
	static int fd;
	const long ms = choose_ms();

	if (!fd) {
		listen_somewhere(0, &name, &size);
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		connect(fd, (struct sockaddr *)&name, size);
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
	}
	set_timeout(fd, SO_SNDTIMEO, ms);
	EXPECT(kind, ms, JIFFY_MS, connect(fd, (struct sockaddr *)&name, size), FAILED(EAGAIN));
}

struct kind timed_kinds[] = {
    {.name = "epoll_wait", .run = time_epoll_wait},
    {.name = "epoll_pwait", .run = time_epoll_pwait},
    {.name = "epoll_pwait2", .run = time_epoll_pwait2},
    {.name = "poll", .run = time_poll},
    {.name = "ppoll", .run = time_ppoll},
    {.name = "select", .run = time_select},
    {.name = "nanosleep", .run = time_nanosleep},
    {.name = "clock_nanosleep", .run = time_clock_nanosleep},
    {.name = "poll_computed", .run = time_poll_computed},
    {.name = "nanosleep_computed", .run = time_nanosleep_computed},
    {.name = "clock_nanosleep_computed", .run = time_clock_nanosleep_computed},
    {.name = "futex_computed", .run = time_futex_computed},
    {.name = "futex", .run = time_futex},
    {.name = "condition", .run = time_condition},
    {.name = "semtimedop", .run = time_semtimedop},
    {.name = "sigtimedwait", .run = time_sigtimedwait},
    {.name = "io_getevents", .run = time_io_getevents},
    {.name = "io_uring_enter", .run = time_io_uring_enter},
    {.name = "recv", .run = time_recv},
    {.name = "read", .run = time_read},
    {.name = "recv_waitall", .run = time_recv_waitall},
    {.name = "send", .run = time_send},
    {.name = "accept", .run = time_accept},
    {.name = "connect", .run = time_connect},
    {0},
};
