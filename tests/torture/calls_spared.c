// SPDX-License-Identifier: MIT
// Calls that do not bear a stop while they sleep, made by functions whose frames have no fixed
// size, so that only a stop would show their callers.
#include <alloca.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

#include "torture.h"

enum { ANSWER = 77, MIN_MS = 3, MORE_MS = 25 };

static int listener;
static atomic_int n_asked;

// Each question is to come once.
static void *supervise(void *argument)
{
	for (;;) {
		struct seccomp_notif question = {0};
		struct seccomp_notif_resp answer = {.val = ANSWER};

		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question))
			continue;
		atomic_fetch_add(&n_asked, 1);
		sleep_ms(MIN_MS + random_below(MORE_MS));
		answer.id = question.id;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	return argument;
}

FRAME void ask_supervisor(struct kind *kind)
{
	char *space = alloca((size_t)(16 + 16 * random_below(8)));
	const int before = atomic_load(&n_asked);

	__asm__ volatile("" : : "r"(space) : "memory");
	if (!listener) {
		listener = ask_for_supervision();
		if (listener < 0)
			die("seccomp");
		help(supervise, NULL);
	}
	const long result = syscall(SYS_getpriority, 0, 0);
	if (result != ANSWER)
		fault(kind, "answered", result);
	else if (atomic_load(&n_asked) != before + 1)
		fault(kind, "asked", atomic_load(&n_asked) - before);
}

// Two ends of a TCP connection, with small buffers.
static void connect_pair(int ends[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	const int server = socket(AF_INET, SOCK_STREAM, 0), bytes = 8192;

	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(server, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (bind(server, (struct sockaddr *)&address, size) || listen(server, 1) ||
	    getsockname(server, (struct sockaddr *)&address, &size) ||
	    connect(ends[0], (struct sockaddr *)&address, size))
		die("connect");
	ends[1] = accept(server, NULL, NULL);
	close(server);
}

struct reader {
	int socket;
	atomic_int has_begun, has_ended;
};

static void *read_late(void *argument)
{
	struct reader *reader = argument;
	char bytes[4096];

	sleep_ms(MIN_MS + random_below(MORE_MS));
	atomic_store(&reader->has_begun, 1);
	while (read(reader->socket, bytes, sizeof(bytes)) > 0)
		;
	close(reader->socket);
	atomic_store(&reader->has_ended, 1);
	return NULL;
}

static long close_natively(int fd)
{
	return close(fd);
}

// It is over when all has been received: not before the other end begins to read.
FRAME void linger_in(struct kind *kind, long (*close_)(int fd))
{
	static const char zeros[65536];
	const struct linger linger = {1, 30};
	char *space = alloca((size_t)(16 + 16 * random_below(8)));
	struct reader reader = {0};
	int ends[2];

	__asm__ volatile("" : : "r"(space) : "memory");
	connect_pair(ends);
	reader.socket = ends[1];
	while (send(ends[0], zeros, sizeof(zeros), MSG_DONTWAIT) > 0)
		;
	setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	help(read_late, &reader);
	close_(ends[0]);
	if (!atomic_load(&reader.has_begun))
		fault(kind, "left with data unsent", 0);
	while (!atomic_load(&reader.has_ended))
		sleep_ms(1);
}

FRAME void close_lingering(struct kind *kind)
{
	linger_in(kind, close_natively);
}

#ifdef __x86_64__
// i386's number of close is x86-64's of lstat, which bears a stop.
static long close_by_int_80(int fd)
{
	return int_80(6, fd, 0, 0, 0);
}

FRAME void close_lingering_int_80(struct kind *kind)
{
	linger_in(kind, close_by_int_80);
}
#endif

#define ALL 100
#define FIRST_MS 25
#define TIMEOUT_MS 200
#define PART_MS 120
#define MAX_LATE_MS 80 // less than it would be, had the time begun again with the part

#define BEAT_MS 4
#define BEAT_LATE_MS 5 // by which a sleep may be longer

static _Atomic double paused_s;

// Only sleeps, for a moment at a time: where it wakes late the machine was paused or had no CPU for
// it.
static void *beat(void *argument)
{
	for (;;) {
		const double start_s = now_s();

		sleep_ms(BEAT_MS);
		const double late_s = now_s() - start_s - BEAT_MS * 1e-3;
		if (late_s > BEAT_LATE_MS * 1e-3)
			atomic_store(&paused_s, atomic_load(&paused_s) + late_s);
	}
	return argument;
}

// Returns for how long the machine has been paused since the first call.
static double paused_so_far_s(void)
{
	static bool beats;

	if (!beats)
		help(beat, NULL);
	beats = true;
	return atomic_load(&paused_s);
}

static void *send_one(void *argument)
{
	sleep_ms(PART_MS);
	if (write(*(int *)argument, "", 1) != 1)
		die("write");
	return NULL;
}

// A part comes, and then no more: SO_RCVTIMEO is for the call as a whole.
FRAME void receive_part(struct kind *kind)
{
	const struct timeval timeout = {.tv_usec = TIMEOUT_MS * 1000};
	char *space = alloca((size_t)(16 + 16 * random_below(8)));
	char bytes[ALL];
	int ends[2];

	__asm__ volatile("" : : "r"(space) : "memory");
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		die("socketpair");
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	const pthread_t sender = begin(send_one, &ends[1]);
	const double paused_before_s = paused_so_far_s();
	const struct beginning begun = begin_call();
	// libc's recv keeps the frame pointer where it is found.
	const long n =
	    syscall(SYS_recvfrom, ends[0], bytes, sizeof(bytes), MSG_WAITALL, NULL, NULL);
	const double gone_s = now_s() - begun.start_s - (waited_s() - begun.waited_s);
	const double late_ms = gone_s * 1e3 - TIMEOUT_MS;
	// The sender may be late, and nothing have come.
	if (n != 1 && !(n < 0 && errno == EAGAIN))
		fault(kind, "received", n);
	pthread_join(sender, NULL);
	sleep_ms(2 * BEAT_MS); // for a pause that is only just over
	const double paused_ms = (paused_so_far_s() - paused_before_s) * 1e3;
	if (late_ms - paused_ms > MAX_LATE_MS)
		fault(kind, "late, by ms", (long)late_ms);
	close(ends[0]);
	close(ends[1]);
}

// What is left of its time is told to who is interrupted: one that is not finds its memory
// unchanged.
FRAME void keep_rest(struct kind *kind)
{
	char *space = alloca((size_t)(16 + 16 * random_below(8)));
	const struct timespec length = {0, (MIN_MS + random_below(MORE_MS)) * 1000000L};
	struct timespec rest = length;
	const int clock = random_below(2) ? CLOCK_MONOTONIC : CLOCK_REALTIME;

	__asm__ volatile("" : : "r"(space) : "memory");
	const int result = clock == CLOCK_REALTIME ? nanosleep(&rest, &rest)
	                                           : clock_nanosleep(clock, 0, &rest, &rest);
	if (result || rest.tv_nsec != length.tv_nsec)
		fault(kind, "left", rest.tv_nsec);
}

static void *type_late(void *argument)
{
	const int fd = *(int *)argument;

	for (int i = 0; i < 2; i++) {
		sleep_ms(FIRST_MS);
		if (write(fd, "x", 1) != 1)
			die("write");
	}
	return NULL;
}

// Ends with its second byte, as the time that it waits for that one is long. A stop between the two
// would have it return with the first.
FRAME void read_terminal(struct kind *kind)
{
	char *space = alloca((size_t)(16 + 16 * random_below(8)));
	struct termios modes;
	int master, slave;
	char bytes[2];

	__asm__ volatile("" : : "r"(space) : "memory");
	if (openpty(&master, &slave, NULL, NULL, NULL) || tcgetattr(slave, &modes))
		die("openpty");
	cfmakeraw(&modes);
	modes.c_cc[VMIN] = 2;
	modes.c_cc[VTIME] = 255; // tenths of a second
	tcsetattr(slave, TCSANOW, &modes);
	const pthread_t typist = begin(type_late, &master);
	const long n = syscall(SYS_read, slave, bytes, sizeof(bytes));
	if (n != 2)
		fault(kind, "read", n);
	pthread_join(typist, NULL);
	close(slave);
	close(master);
}

static void *send_descriptor_late(void *argument)
{
	char bytes[ALL / 2] = {0}, control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {bytes, sizeof(bytes)};
	struct msghdr message = {.msg_iov = &part,
	                         .msg_iovlen = 1,
	                         .msg_control = control,
	                         .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	const int fd = *(int *)argument;

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(int));
	if (write(fd, bytes, sizeof(bytes)) != sizeof(bytes))
		die("write");
	sleep_ms(FIRST_MS);
	if (sendmsg(fd, &message, 0) != sizeof(bytes))
		die("sendmsg");
	return NULL;
}

// What has room for control data cannot be continued.
FRAME void receive_descriptor(struct kind *kind)
{
	char *space = alloca((size_t)(16 + 16 * random_below(8)));
	char bytes[ALL], control[CMSG_SPACE(sizeof(int))];
	struct iovec part = {bytes, sizeof(bytes)};
	struct msghdr message = {.msg_iov = &part,
	                         .msg_iovlen = 1,
	                         .msg_control = control,
	                         .msg_controllen = sizeof(control)};
	int ends[2], fd;

	__asm__ volatile("" : : "r"(space) : "memory");
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		die("socketpair");
	const pthread_t sender = begin(send_descriptor_late, &ends[1]);
	const long n = recvmsg(ends[0], &message, MSG_WAITALL);
	const struct cmsghdr *header = n == ALL ? CMSG_FIRSTHDR(&message) : NULL;
	if (header) {
		memcpy(&fd, CMSG_DATA(header), sizeof(int));
		close(fd);
	} else {
		fault(kind, "received", n);
	}
	pthread_join(sender, NULL);
	close(ends[0]);
	close(ends[1]);
}

#define PIPE_BYTES 65536
#define BLOCK (PIPE_BYTES + 1000)

struct replaced {
	int fd, pipe; // the write end, by a number that is to mean something else; the read end
	long received;
};

static void *replace(void *argument)
{
	struct replaced *replaced = argument;
	const int null = open("/dev/null", O_WRONLY);
	static _Thread_local char bytes[BLOCK];

	for (int in_pipe = 0; in_pipe < PIPE_BYTES; sleep_ms(1))
		ioctl(replaced->pipe, FIONREAD, &in_pipe);
	dup2(null, replaced->fd);
	close(null);
	sleep_ms(MORE_MS);
	for (long n; (n = read(replaced->pipe, bytes, sizeof(bytes))) > 0;)
		replaced->received += n;
	return NULL;
}

// While a thread writes, another one gives the descriptor's number to another file. All of what is
// written goes where it began to.
FRAME void write_to_replaced(struct kind *kind)
{
	static char bytes[BLOCK];
	char *space = alloca((size_t)(16 + 16 * random_below(8)));
	struct replaced replaced = {0};
	int ends[2];

	__asm__ volatile("" : : "r"(space) : "memory");
	if (pipe(ends))
		die("pipe");
	replaced.pipe = ends[0];
	replaced.fd = ends[1];
	const pthread_t reader = begin(replace, &replaced);
	const long n = write(ends[1], bytes, BLOCK);
	pthread_join(reader, NULL);
	if (n != BLOCK || replaced.received != BLOCK)
		fault(kind, "arrived", replaced.received);
	close(ends[0]);
	close(ends[1]);
}

#define LINE 9000

static struct kind *printing;

// When another one's begins, each one's last line has come to its end.
static void *read_lines(void *argument)
{
	static char bytes[3000];
	static long n_read[256];
	unsigned char letter = 'a';

	for (long n; (n = read(*(int *)argument, bytes, sizeof(bytes))) > 0;) {
		for (long i = 0; i < n; i++) {
			const unsigned char next = (unsigned char)bytes[i];
			if (next != letter && n_read[letter] % LINE != 0)
				fault(printing, "another's, at", n_read[letter] % LINE);
			letter = next;
			n_read[letter]++;
		}
		sleep_ms(MIN_MS);
	}
	return NULL;
}

FRAME void print_lines(int terminal, char letter)
{
	char *space = alloca((size_t)(16 + 16 * random_below(8)));
	char line[LINE];

	__asm__ volatile("" : : "r"(space) : "memory");
	memset(line, letter, sizeof(line));
	if (write(terminal, line, sizeof(line)) != sizeof(line))
		die("write");
}

static void *print_others(void *argument)
{
	while (!is_over())
		print_lines(*(int *)argument, 'b');
	return NULL;
}

// Lines of two threads come whole, though a terminal takes them piece by piece.
FRAME void print_whole(struct kind *kind)
{
	static int master, slave;
	struct termios modes;

	if (!slave) {
		if (openpty(&master, &slave, NULL, NULL, NULL))
			die("openpty");
		tcgetattr(slave, &modes);
		cfmakeraw(&modes);
		tcsetattr(slave, TCSANOW, &modes);
		printing = kind;
		help(read_lines, &master);
		help(print_others, &slave);
	}
	print_lines(slave, 'a');
}

enum { PAGE = 4096 };

// Memory of one page, which another thread provides.
static struct {
	int fd; // userfaultfd(2)'s; -1: there is none
	volatile char *page;
	atomic_int n_asked;
} served;

// Returns how often it is asked for in that time; -1: until it is.
static int count_questions(int ms)
{
	const double end_s = now_s() + ms * 1e-3;
	struct pollfd asked = {.fd = served.fd, .events = POLLIN};
	struct uffd_msg question;
	int n = 0;

	while (ms < 0 ? n == 0 : now_s() < end_s)
		if (poll(&asked, 1, ms < 0 ? -1 : 1) > 0)
			n += read(served.fd, &question, sizeof(question)) == sizeof(question);
	return n;
}

static void *provide_page(void *argument)
{
	static char bytes[PAGE] = {ANSWER};

	for (;;) {
		struct uffdio_copy answer = {
		    .dst = (uintptr_t)served.page, .src = (uintptr_t)bytes, .len = PAGE};
		const int n = count_questions(-1);
		atomic_store(&served.n_asked, n + count_questions(MIN_MS + random_below(MORE_MS)));
		ioctl(served.fd, UFFDIO_COPY, &answer);
	}
	return argument;
}

static void serve_page(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	served.page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (uintptr_t)served.page;
	range.range.len = PAGE;
	served.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (served.fd >= 0 &&
	    (ioctl(served.fd, UFFDIO_API, &api) || ioctl(served.fd, UFFDIO_REGISTER, &range)))
		served.fd = -1;
	if (served.fd >= 0)
		help(provide_page, NULL);
}

// It sleeps in no system call then.
FRAME void touch_served_page(struct kind *kind)
{
	char *space = alloca((size_t)(16 + 16 * random_below(8)));

	__asm__ volatile("" : : "r"(space) : "memory");
	if (!served.page)
		serve_page();
	if (served.fd < 0) {
		leave_out(kind, "no userfaultfd(2)");
		return;
	}
	madvise((void *)served.page, PAGE, MADV_DONTNEED);
	if (*served.page != ANSWER)
		fault(kind, "read", *served.page);
	else if (atomic_load(&served.n_asked) != 1)
		fault(kind, "asked", atomic_load(&served.n_asked));
}

struct kind spared_kinds[] = {
    {.name = "ask_supervisor", .run = ask_supervisor},
    {.name = "touch_served_page", .run = touch_served_page},
    {.name = "close_lingering", .run = close_lingering},
#ifdef __x86_64__
    {.name = "close_int_80", .run = close_lingering_int_80},
#endif
    {.name = "receive_part", .run = receive_part},
    {.name = "read_terminal", .run = read_terminal},
    {.name = "keep_rest", .run = keep_rest},
    {.name = "wait_requeued", .run = wait_requeued},
    {.name = "wait_semaphore", .run = wait_semaphore},
    {.name = "receive_descriptor", .run = receive_descriptor},
    {.name = "write_to_replaced", .run = write_to_replaced},
    {.name = "print_whole", .run = print_whole},
    {0},
};
