// SPDX-License-Identifier: MIT
// Calls that wait until a helper wakes them, and may end for no other reason; and calls that a
// signal with a handler interrupts, which must end with EINTR each time.
#include <linux/aio_abi.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>

#include "torture.h"

// The helper does its work once for each round, some time after the call has begun.
struct helper {
	void (*wake)(void);
	int go; // an eventfd: how many rounds have begun
};

static void *wake_again_and_again(void *argument)
{
	struct helper *helper = argument;
	uint64_t n;

	while (read(helper->go, &n, sizeof(n)) == sizeof(n))
		for (; n > 0; n--) {
			usleep((useconds_t)random_below(9000));
			helper->wake();
		}
	return NULL;
}

static void begin_round(struct helper *helper)
{
	const uint64_t one = 1;

	if (!helper->go) {
		helper->go = eventfd(0, 0);
		help(wake_again_and_again, helper);
	}
	if (write(helper->go, &one, sizeof(one)) != sizeof(one))
		die("eventfd");
}

static void set_timeout(int fd, int option)
{
	const struct timeval length = {60, 0};

	setsockopt(fd, SOL_SOCKET, option, &length, sizeof(length));
}

#define EXPECT(kind, call, good)                                                                   \
	do {                                                                                       \
		const long result = (call);                                                        \
		if (!(good))                                                                       \
			fault(kind, "returned", result);                                           \
	} while (0)

static int epoll_event_fd, epoll2_event_fd;

static void add_one(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		die("eventfd");
}

static void wake_epoll(void)
{
	add_one(epoll_event_fd);
}

static void wake_epoll2(void)
{
	add_one(epoll2_event_fd);
}

static int make_epoll(int *ret_event_fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	const int fd = epoll_create1(0);

	*ret_event_fd = eventfd(0, 0);
	epoll_ctl(fd, EPOLL_CTL_ADD, *ret_event_fd, &event);
	return fd;
}

FRAME void wait_epoll(struct kind *kind)
{
	static struct helper helper = {.wake = wake_epoll};
	static int fd;
	struct epoll_event event;
	uint64_t n;

	if (!fd)
		fd = make_epoll(&epoll_event_fd);
	begin_round(&helper);
	EXPECT(kind, epoll_wait(fd, &event, 1, -1), result == 1);
	EXPECT(kind, read(epoll_event_fd, &n, sizeof(n)), result == 8);
}

FRAME void wait_epoll_pwait2(struct kind *kind)
{
	static struct helper helper = {.wake = wake_epoll2};
	static int fd;
	struct epoll_event event;
	uint64_t n;

	if (!fd)
		fd = make_epoll(&epoll2_event_fd);
	begin_round(&helper);
	EXPECT(kind, syscall(441, fd, &event, 1, NULL, NULL, 8), result == 1);
	EXPECT(kind, read(epoll2_event_fd, &n, sizeof(n)), result == 8);
}

// Who waits has removed it, since a fault, which is counted, has ended its last round before that.
static int is_removed(const struct kind *waiting, int error)
{
	return waiting->faults > 0 && (error == EINVAL || error == EIDRM);
}

static int semaphores = -1;
static struct kind *semaphores_kind;

static void wake_semop(void)
{
	struct sembuf up = {0, 1, 0};

	if (semop(semaphores, &up, 1) && !is_removed(semaphores_kind, errno))
		die("semop");
}

FRAME void wait_semop(struct kind *kind)
{
	static struct helper helper = {.wake = wake_semop};
	struct sembuf down = {0, -1, 0};

	if (semaphores < 0)
		semaphores = semget(IPC_PRIVATE, 1, 0600);
	semaphores_kind = kind;
	begin_round(&helper);
	EXPECT(kind, semop(semaphores, &down, 1), result == 0);
	if (is_over())
		semctl(semaphores, 0, IPC_RMID);
}

static pthread_t signal_waiter;

static void wake_sigwaitinfo(void)
{
	const union sigval value = {.sival_int = 4711};

	pthread_sigqueue(signal_waiter, SIGRTMIN + 3, value);
}

FRAME void wait_sigwaitinfo(struct kind *kind)
{
	static struct helper helper = {.wake = wake_sigwaitinfo};
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal_waiter = pthread_self();
	begin_round(&helper);
	EXPECT(kind, sigwaitinfo(&set, &info),
	       result == SIGRTMIN + 3 && info.si_value.sival_int == 4711);
}

static int recv_fds[2], read_fds[2], send_fds[2];

static void wake_recv(void)
{
	if (write(recv_fds[1], "x", 1) != 1)
		die("write");
}

FRAME void wait_recv(struct kind *kind)
{
	static struct helper helper = {.wake = wake_recv};
	char byte = 0;

	if (!recv_fds[1])
		socketpair(AF_UNIX, SOCK_STREAM, 0, recv_fds);
	set_timeout(recv_fds[0], SO_RCVTIMEO);
	begin_round(&helper);
	EXPECT(kind, recv(recv_fds[0], &byte, 1, 0), result == 1 && byte == 'x');
}

static void wake_read(void)
{
	if (write(read_fds[1], "y", 1) != 1)
		die("write");
}

FRAME void wait_read(struct kind *kind)
{
	static struct helper helper = {.wake = wake_read};
	char byte = 0;

	if (!read_fds[1])
		socketpair(AF_UNIX, SOCK_DGRAM, 0, read_fds);
	set_timeout(read_fds[0], SO_RCVTIMEO);
	begin_round(&helper);
	EXPECT(kind, read(read_fds[0], &byte, 1), result == 1 && byte == 'y');
}

static char block[20000];

static void wake_send(void)
{
	static char bytes[sizeof(block)];

	if (recv(send_fds[1], bytes, sizeof(bytes), MSG_WAITALL) != sizeof(bytes))
		die("recv");
}

FRAME void wait_send(struct kind *kind)
{
	static struct helper helper = {.wake = wake_send};

	if (!send_fds[1])
		socketpair(AF_UNIX, SOCK_STREAM, 0, send_fds);
	set_timeout(send_fds[0], SO_SNDTIMEO);
	begin_round(&helper);
	EXPECT(kind, send(send_fds[0], block, sizeof(block), 0), result == sizeof(block));
}

static struct sockaddr_un accept_name, connect_name;
static socklen_t accept_name_size, connect_name_size;
static int connect_listener;

static void wake_accept(void)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&accept_name, accept_name_size))
		die("connect");
	close(fd);
}

FRAME void wait_accept(struct kind *kind)
{
	static struct helper helper = {.wake = wake_accept};
	static int fd;

	if (!fd)
		fd = listen_somewhere(5, &accept_name, &accept_name_size);
	set_timeout(fd, SO_RCVTIMEO);
	begin_round(&helper);
	EXPECT(kind, accept(fd, NULL, NULL), result >= 0 && close((int)result) == 0);
}

static void wake_connect(void)
{
	close(accept(connect_listener, NULL, NULL));
}

// The listener's queue holds one: the second waits until the first is accepted.
FRAME void wait_connect(struct kind *kind)
{
	static struct helper helper = {.wake = wake_connect};
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (!connect_listener) {
		connect_listener = listen_somewhere(0, &connect_name, &connect_name_size);
		connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&connect_name,
		        connect_name_size);
	}
	set_timeout(fd, SO_SNDTIMEO);
	begin_round(&helper);
	EXPECT(kind, connect(fd, (struct sockaddr *)&connect_name, connect_name_size), result == 0);
	close(fd);
}

static int aio_event_fd;

static void wake_io_getevents(void)
{
	add_one(aio_event_fd);
}

FRAME void wait_io_getevents(struct kind *kind)
{
	static struct helper helper = {.wake = wake_io_getevents};
	static aio_context_t context;
	struct iocb request = {.aio_lio_opcode = IOCB_CMD_POLL, .aio_buf = POLLIN};
	struct iocb *requests[] = {&request};
	struct io_event event;
	uint64_t n;

	if (!aio_event_fd)
		aio_event_fd = eventfd(0, 0);
	request.aio_fildes = (uint32_t)aio_event_fd;
	if ((!context && syscall(SYS_io_setup, 8, &context)) ||
	    syscall(SYS_io_submit, context, 1, requests) != 1) {
		sleep_ms(100); // not permitted here
		return;
	}
	begin_round(&helper);
	EXPECT(kind, syscall(SYS_io_getevents, context, 1, 1, &event, NULL), result == 1);
	EXPECT(kind, read(aio_event_fd, &n, sizeof(n)), result == 8);
}

static int queue = -1;
static struct kind *queue_kind;

static void wake_msgrcv(void)
{
	const struct {
		long type;
		char text[8];
	} message = {1, "message"};

	if (msgsnd(queue, &message, sizeof(message.text), 0) && !is_removed(queue_kind, errno))
		die("msgsnd");
}

FRAME void wait_msgrcv(struct kind *kind)
{
	static struct helper helper = {.wake = wake_msgrcv};
	struct {
		long type;
		char text[8];
	} message;

	if (queue < 0)
		queue = msgget(IPC_PRIVATE, 0600);
	queue_kind = kind;
	begin_round(&helper);
	EXPECT(kind, msgrcv(queue, &message, sizeof(message.text), 0, 0),
	       result == sizeof(message.text));
	if (is_over())
		msgctl(queue, IPC_RMID, NULL);
}

struct kind woken_kinds[] = {
    {.name = "epoll_wait", .run = wait_epoll}, {.name = "epoll_pwait2", .run = wait_epoll_pwait2},
    {.name = "semop", .run = wait_semop},      {.name = "sigwaitinfo", .run = wait_sigwaitinfo},
    {.name = "recv", .run = wait_recv},        {.name = "read", .run = wait_read},
    {.name = "send", .run = wait_send},        {.name = "accept", .run = wait_accept},
    {.name = "connect", .run = wait_connect},  {.name = "io_getevents", .run = wait_io_getevents},
    {.name = "msgrcv", .run = wait_msgrcv},    {0},
};

// Signals a thread once for each round, after it has fallen asleep in its call.
struct signaller {
	struct kind *kind;
	pid_t target;
	_Atomic pid_t tid; // 0: no round has begun
	long n_again;
};

enum { MAX_AGAIN_SHARE = 50, FAR_MS = 60000 };

static const double AGAIN_S = 0.3;

// A call that a stop has interrupted is restarted. Between the stop's end and the call's new
// beginning a signal is handled as if it had come before the call, as it may be without any stop:
// nobody but who watches the thread in /proc, like this program, can tell. That is a matter of one
// instruction, and may befall a few calls.
static void signal_again(struct signaller *signaller)
{
	double again_s = now_s() + AGAIN_S;

	while (!atomic_load(&signaller->tid)) {
		usleep(1000); // tens of ms on a busy machine
		if (now_s() < again_s)
			continue;
		again_s = now_s() + AGAIN_S;
		// It may wait for a CPU, or have ended; or it sleeps in the next round by now,
		// which it has told of before.
		if (state_of(signaller->target) != 'S' || atomic_load(&signaller->tid) ||
		    tgkill(getpid(), signaller->target, SIGUSR1) != 0)
			continue;
		if (++signaller->n_again > 1 + signaller->kind->calls / MAX_AGAIN_SHARE)
			fault(signaller->kind, "not interrupted", signaller->n_again);
	}
}

// 0: the thread has ended. One that was signalled again when its call had just ended is a round
// ahead.
static int await_sleep(const struct signaller *signaller)
{
	pid_t tid;
	char state;

	do {
		usleep(1000);
		tid = atomic_load(&signaller->tid);
		state = tid ? state_of(tid) : 'R';
	} while (state && state != 'S');
	return state != 0;
}

static void *signal_when_asleep(void *argument)
{
	struct signaller *signaller = argument;

	for (;;) {
		if (!await_sleep(signaller))
			return NULL;
		signaller->target = atomic_exchange(&signaller->tid, 0);
		usleep((useconds_t)random_below(4000));
		tgkill(getpid(), signaller->target, SIGUSR1);
		signal_again(signaller);
	}
	return NULL;
}

static void handle(int number)
{
	(void)number;
}

static void begin_interruption(struct signaller *signaller, struct kind *kind)
{
	struct sigaction action = {.sa_handler = handle};

	if (!signaller->kind) {
		sigaction(SIGUSR1, &action, NULL);
		signaller->kind = kind;
		help(signal_when_asleep, signaller);
	}
	atomic_store(&signaller->tid, own_tid());
}

#define FAILED(number) (result == -1 && errno == (number))

FRAME void interrupt_epoll_wait(struct kind *kind)
{
	static struct signaller signaller;
	static int fd;
	struct epoll_event event;

	if (!fd)
		fd = epoll_create1(0);
	begin_interruption(&signaller, kind);
	EXPECT(kind, epoll_wait(fd, &event, 1, FAR_MS), FAILED(EINTR));
}

FRAME void interrupt_poll(struct kind *kind)
{
	static struct signaller signaller;

	begin_interruption(&signaller, kind);
	EXPECT(kind, poll(NULL, 0, FAR_MS), FAILED(EINTR));
}

FRAME void interrupt_nanosleep(struct kind *kind)
{
	static struct signaller signaller;
	const struct timespec length = {FAR_MS / 1000, 0};

	begin_interruption(&signaller, kind);
	EXPECT(kind, nanosleep(&length, NULL), FAILED(EINTR));
}

FRAME void interrupt_semop(struct kind *kind)
{
	static struct signaller signaller;
	static int id = -1;
	const struct timespec length = {FAR_MS / 1000, 0};
	struct sembuf down = {0, -1, 0};

	if (id < 0)
		id = semget(IPC_PRIVATE, 1, 0600);
	begin_interruption(&signaller, kind);
	EXPECT(kind, semtimedop(id, &down, 1, &length), FAILED(EINTR));
	if (is_over())
		semctl(id, 0, IPC_RMID);
}

FRAME void interrupt_recv(struct kind *kind)
{
	static struct signaller signaller;
	static int fds[2];
	char byte;

	if (!fds[1])
		socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
	set_timeout(fds[0], SO_RCVTIMEO);
	begin_interruption(&signaller, kind);
	EXPECT(kind, recv(fds[0], &byte, 1, 0), FAILED(EINTR));
}

// The pipe takes a part: that part's count is what a signal leaves.
FRAME void interrupt_write(struct kind *kind)
{
	static struct signaller signaller;
	static char bytes[100000];
	int fds[2];

	if (pipe(fds))
		die("pipe");
	begin_interruption(&signaller, kind);
	EXPECT(kind, write(fds[1], bytes, sizeof(bytes)), result == 65536);
	close(fds[0]);
	close(fds[1]);
}

struct kind interrupted_kinds[] = {
    {.name = "epoll_wait", .run = interrupt_epoll_wait},
    {.name = "poll", .run = interrupt_poll},
    {.name = "nanosleep", .run = interrupt_nanosleep},
    {.name = "semtimedop", .run = interrupt_semop},
    {.name = "recv", .run = interrupt_recv},
    {.name = "write", .run = interrupt_write},
    {0},
};
