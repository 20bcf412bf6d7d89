// Calls that do not bear a stop while they sleep, made by functions whose frames have no fixed
// size, so that only a stop would show their callers.
#include <alloca.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

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

// For the calling thread: getpriority(2) is for another to answer.
static void ask_for_supervision(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("PR_SET_NO_NEW_PRIVS");
	listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
	                        SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (listener < 0)
		die("seccomp");
	help(supervise, NULL);
}

FRAME void ask_supervisor(struct kind *kind)
{
	char *space = alloca((size_t)(16 + 16 * random_below(8)));
	const int before = atomic_load(&n_asked);

	__asm__ volatile("" : : "r"(space) : "memory");
	if (!listener)
		ask_for_supervision();
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

struct kind spared_kinds[] = {
    {.name = "ask_supervisor", .run = ask_supervisor},
    {.name = "close_lingering", .run = close_lingering},
#ifdef __x86_64__
    {.name = "close_int_80", .run = close_lingering_int_80},
#endif
    {0},
};
