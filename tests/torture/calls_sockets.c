// SPDX-License-Identifier: MIT
// Calls on sockets whose rest is more than bytes: what is only looked at, completions, many
// messages in a call, and SIGPIPE.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "torture.h"

// Which wants torture.h's <time.h>.
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>

// 0..250, over and over, in small pieces.
static void *send_slowly(void *argument)
{
	const int fd = *(int *)argument;
	unsigned char bytes[20];

	for (unsigned int at = 0;;) {
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (unsigned char)(at++ % 251);
		if (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) < 0)
			return NULL;
		usleep(30);
	}
}

// A stream's reader, which knows what comes next.
struct reader {
	struct kind *kind;
	int fds[2];
	unsigned int at;
	int peeks_on; // SO_PEEK_OFF
};

static void open_reader(struct reader *reader, struct kind *kind, int is_tcp)
{
	if (reader->kind)
		return;
	if (is_tcp)
		pair_tcp(reader->fds);
	else
		pair_unix(reader->fds, SOCK_STREAM);
	reader->kind = kind;
	help(send_slowly, &reader->fds[1]);
}

static void check_next(struct reader *reader, const unsigned char *bytes, long n, long wanted)
{
	if (n != wanted)
		fault(reader->kind, "received", n);
	for (long i = 0; i < n; i++)
		if (bytes[i] != (reader->at + (unsigned int)i) % 251) {
			fault(reader->kind, "other byte, at", i);
			return;
		}
}

#define LOOKED_AT 800

// TCP waits for all of it, a unix socket shows what it has.
static void look_and_take(struct reader *reader, int waits)
{
	static _Thread_local unsigned char bytes[LOOKED_AT];
	struct iovec parts[] = {{bytes, 300}, {bytes + 300, LOOKED_AT - 300}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	const int flags = MSG_PEEK | MSG_WAITALL;
	long n;

	// Under a filter a list that is peeked at from an offset is left short, and counted.
	if (reader->kind->calls % 2 || (reader->peeks_on && prctl(PR_GET_SECCOMP)))
		n = recv(reader->fds[0], bytes, LOOKED_AT, flags);
	else
		n = recvmsg(reader->fds[0], &message, flags);
	check_next(reader, bytes, n, waits || n <= 0 ? LOOKED_AT : n);
	n = recv(reader->fds[0], bytes, LOOKED_AT, MSG_WAITALL);
	check_next(reader, bytes, n, LOOKED_AT);
	reader->at += n > 0 ? (unsigned int)n : 0;
}

FRAME void peek_tcp(struct kind *kind)
{
	static struct reader reader;

	open_reader(&reader, kind, 1);
	look_and_take(&reader, 1);
}

FRAME void peek_unix(struct kind *kind)
{
	static struct reader reader;

	open_reader(&reader, kind, 0);
	look_and_take(&reader, 0);
}

// Each look begins behind the one before; what is taken sets the next one's beginning back.
FRAME void peek_on_tcp(struct kind *kind)
{
	static struct reader reader;
	const int from_the_start = 0;

	open_reader(&reader, kind, 1);
	reader.peeks_on = 1;
	if (setsockopt(reader.fds[0], SOL_SOCKET, SO_PEEK_OFF, &from_the_start, sizeof(int)))
		leave_out(kind, "no SO_PEEK_OFF");
	else
		look_and_take(&reader, 1);
}

#define LEAST 1000

// SO_RCVLOWAT: the call returns with that much, or more.
static void take_least(struct reader *reader)
{
	static _Thread_local unsigned char bytes[LEAST * 2];
	const struct iovec parts[] = {{bytes, 777}, {bytes + 777, LEAST * 2 - 777}};
	const int least = LEAST, fd = reader->fds[0];
	long n;

	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
	if (reader->kind->calls % 3 == 0)
		n = read(fd, bytes, sizeof(bytes));
	else if (reader->kind->calls % 3 == 1 && prctl(PR_GET_SECCOMP) == 0)
		n = readv(fd, parts, 2); // under a filter it is left short, and counted
	else
		n = recv(fd, bytes, sizeof(bytes), 0);
	check_next(reader, bytes, n, n < LEAST ? LEAST : n);
	reader->at += n > 0 ? (unsigned int)n : 0;
}

FRAME void least_tcp(struct kind *kind)
{
	static struct reader reader;

	open_reader(&reader, kind, 1);
	take_least(&reader);
}

FRAME void least_unix(struct kind *kind)
{
	static struct reader reader;

	open_reader(&reader, kind, 0);
	take_least(&reader);
}

static volatile sig_atomic_t pipes;

static void on_pipe(int signal)
{
	(void)signal;
	pipes++;
}

static void *leave_early(void *argument)
{
	const int fd = *(int *)argument;
	char bytes[4096];

	for (int i = 0; i < 20; i++) {
		if (read(fd, bytes, sizeof(bytes)) <= 0)
			break;
		usleep(30);
	}
	close(fd);
	return NULL;
}

#define SENT (1 << 20)

// Whoever has moved something when the reader leaves gets no SIGPIPE, by unix(7).
static void write_to_leaver(struct kind *kind, int fds[2])
{
	static char bytes[SENT];
	struct iovec parts[] = {{bytes, 70000}, {bytes + 70000, SENT - 70000}};
	const int small = 8192;
	pthread_t reader;
	long n;

	setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	setsockopt(fds[0], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	signal(SIGPIPE, on_pipe);
	pipes = 0;
	if (pthread_create(&reader, NULL, leave_early, &fds[0]))
		die("pthread_create");
	if (kind->calls % 2)
		n = write(fds[1], bytes, SENT);
	else
		n = writev(fds[1], parts, 2);
	if (n > 0 && pipes > 0)
		fault(kind, "SIGPIPE after", n);
	if (n == SENT)
		fault(kind, "sent all", n);
	shutdown(fds[1], SHUT_WR); // the reader waits for more, should it have been short
	pthread_join(reader, NULL);
	close(fds[1]);
}

FRAME void sigpipe_unix(struct kind *kind)
{
	int fds[2];

	pair_unix(fds, SOCK_STREAM);
	write_to_leaver(kind, fds);
}

static void *drain(void *argument)
{
	static _Thread_local char bytes[30000];

	while (read(*(int *)argument, bytes, sizeof(bytes)) > 0)
		usleep(100);
	return NULL;
}

// The number of completions that the socket tells of, which count from 0.
static unsigned int count_completions(int fd, uint8_t origin, unsigned int before)
{
	char control[256];
	struct msghdr message = {.msg_control = control, .msg_controllen = sizeof(control)};

	while (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0) {
		for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header;
		     header = CMSG_NXTHDR(&message, header)) {
			struct sock_extended_err error;
			if (header->cmsg_level != SOL_IP || header->cmsg_type != IP_RECVERR)
				continue;
			memcpy(&error, CMSG_DATA(header), sizeof(error));
			if (error.ee_origin == origin && origin == SO_EE_ORIGIN_ZEROCOPY)
				before = error.ee_data + 1;
			else if (error.ee_origin == origin)
				before++;
		}
		message.msg_controllen = sizeof(control);
	}
	return before;
}

struct sender {
	int fds[2];
	unsigned int sent, completed;
};

static void open_sender(struct sender *sender, int option, int value)
{
	if (sender->fds[1])
		return;
	pair_tcp(sender->fds);
	if (setsockopt(sender->fds[1], SOL_SOCKET, option, &value, sizeof(value)))
		die("setsockopt");
	help(drain, &sender->fds[0]);
}

// Each call has one completion, be it cut or not.
static void note_completions(struct kind *kind, struct sender *sender, uint8_t origin)
{
	struct pollfd errors = {.fd = sender->fds[1]};

	do
		sender->completed = count_completions(sender->fds[1], origin, sender->completed);
	while (sender->completed < sender->sent && poll(&errors, 1, 1000) > 0);
	if (sender->completed > sender->sent) {
		fault(kind, "completions too many", sender->completed - sender->sent);
		sender->sent = sender->completed;
	}
}

FRAME void complete_zerocopy(struct kind *kind)
{
	static struct sender sender;
	static char bytes[4 * SENT];

	open_sender(&sender, SO_ZEROCOPY, 1);
	if (send(sender.fds[1], bytes, sizeof(bytes), MSG_ZEROCOPY) > 0)
		sender.sent++;
	note_completions(kind, &sender, SO_EE_ORIGIN_ZEROCOPY);
}

FRAME void complete_timestamp(struct kind *kind)
{
	static struct sender sender;
	static char bytes[SENT];

	static const int small = 100000; // so that it waits

	open_sender(&sender, SO_TIMESTAMPING,
	            SOF_TIMESTAMPING_TX_ACK | SOF_TIMESTAMPING_SOFTWARE |
	                SOF_TIMESTAMPING_OPT_TSONLY);
	setsockopt(sender.fds[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	if (send(sender.fds[1], bytes, SENT, 0) > 0)
		sender.sent++;
	note_completions(kind, &sender, SO_EE_ORIGIN_TIMESTAMPING);
}

#define MESSAGES 8

static void *send_messages(void *argument)
{
	for (unsigned char i = 0; send(*(int *)argument, &i, 1, MSG_NOSIGNAL) == 1; i++)
		usleep(100);
	return NULL;
}

// Receives MESSAGES messages in a call; with MSG_WAITFORONE as many as there are, but one.
static void receive_in_order(struct kind *kind, int fds[2], unsigned char *expected, int flags)
{
	unsigned char bytes[MESSAGES];
	struct mmsghdr messages[MESSAGES] = {0};
	struct iovec parts[MESSAGES];
	int error = 0;
	socklen_t size = sizeof(error);

	if (!fds[1]) {
		pair_unix(fds, SOCK_DGRAM);
		help(send_messages, &fds[1]);
	}
	for (int i = 0; i < MESSAGES; i++) {
		parts[i] = (struct iovec){&bytes[i], 1};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
	}
	const int n = recvmmsg(fds[0], messages, MESSAGES, flags, NULL);
	if (n < 1 || (n < MESSAGES && !(flags & MSG_WAITFORONE)))
		fault(kind, "messages", n);
	for (int i = 0; i < n; i++)
		if (bytes[i] != (*expected)++ || messages[i].msg_len != 1)
			fault(kind, "other message", i);
	if (getsockopt(fds[0], SOL_SOCKET, SO_ERROR, &error, &size) || error)
		fault(kind, "SO_ERROR", error);
}

FRAME void receive_messages(struct kind *kind)
{
	static unsigned char expected;
	static int fds[2];

	receive_in_order(kind, fds, &expected, 0);
	KEEP();
}

FRAME void wait_for_one(struct kind *kind)
{
	static unsigned char expected;
	static int fds[2];

	receive_in_order(kind, fds, &expected, MSG_WAITFORONE);
	KEEP();
}

static struct kind *receiving;

static void *receive_each(void *argument)
{
	unsigned char byte, expected = 0;

	while (read(*(int *)argument, &byte, 1) == 1) {
		if (byte != expected++)
			fault(receiving, "other message", byte);
		usleep(30);
	}
	return NULL;
}

FRAME void send_many(struct kind *kind)
{
	static unsigned char next, bytes[MESSAGES * 4];
	static int fds[2];
	struct mmsghdr messages[MESSAGES * 4] = {0};
	struct iovec parts[MESSAGES * 4];

	if (!fds[1]) {
		pair_unix(fds, SOCK_DGRAM);
		receiving = kind;
		help(receive_each, &fds[0]);
	}
	for (int i = 0; i < MESSAGES * 4; i++) {
		bytes[i] = next++;
		parts[i] = (struct iovec){&bytes[i], 1};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
	}
	int n = sendmmsg(fds[1], messages, MESSAGES * 4, 0);
	if (n != MESSAGES * 4)
		fault(kind, "messages", n);
	for (; n < MESSAGES * 4; n++)
		if (send(fds[1], &bytes[n], 1, 0) != 1)
			die("send");
}

// A datagram ends a call that waits for all: the rest is not to be taken from the next.
FRAME void short_datagram(struct kind *kind)
{
	static int fds[2];
	char bytes[100];

	if (!fds[1]) {
		pair_unix(fds, SOCK_DGRAM);
		help(send_messages, &fds[1]);
	}
	const long n = recv(fds[0], bytes, sizeof(bytes), MSG_WAITALL);
	if (n != 1)
		fault(kind, "received", n);
}

// The sender's address is longer than the room for it: what lies behind is not touched, though the
// kernel has written the address's length over the room's.
FRAME void short_address(struct kind *kind)
{
	static struct reader reader;
	static _Thread_local unsigned char bytes[LOOKED_AT];
	union {
		struct sockaddr head;
		char bytes[100];
	} sender;
	const socklen_t room = sizeof(sender.head.sa_family);
	socklen_t size = room;

	if (!reader.kind) {
		const struct sockaddr unnamed = {.sa_family = AF_UNIX};
		open_reader(&reader, kind, 0);
		bind(reader.fds[1], &unnamed, room); // the kernel finds a name
	}
	memset(&sender, 'x', sizeof(sender));
	const long n = recvfrom(reader.fds[0], bytes, LOOKED_AT, MSG_WAITALL, &sender.head, &size);
	check_next(&reader, bytes, n, LOOKED_AT);
	reader.at += n > 0 ? (unsigned int)n : 0;
	for (size_t i = room; i < sizeof(sender); i++)
		if (sender.bytes[i] != 'x') {
			fault(kind, "written behind the room, at", (long)i);
			return;
		}
}

// A socket that does not block takes what it has room for.
FRAME void short_nonblocking(struct kind *kind)
{
	static char bytes[SENT];
	struct iovec parts[] = {{bytes, 1000}, {bytes + 1000, SENT - 1000}};
	int fds[2];

	pair_unix(fds, SOCK_STREAM | SOCK_NONBLOCK);
	const long n = writev(fds[1], parts, 2);
	if (n <= 0 || n >= SENT)
		fault(kind, "sent", n);
	close(fds[0]);
	close(fds[1]);
}

struct kind socket_kinds[] = {
    {.name = "peek_tcp", .run = peek_tcp, .ends_early = 1},
    {.name = "peek_unix", .run = peek_unix, .ends_early = 1},
    {.name = "peek_on_tcp", .run = peek_on_tcp, .ends_early = 1},
    {.name = "own_descriptors", .run = own_descriptors},
    {.name = "least_tcp", .run = least_tcp},
    {.name = "least_unix", .run = least_unix, .ends_early = 1},
    {.name = "descriptor", .run = take_descriptor, .ends_early = 1},
    {.name = "end_at_descriptor", .run = end_at_descriptor, .ends_early = 1},
    {.name = "sigpipe_unix", .run = sigpipe_unix},
    {.name = "zerocopy", .run = complete_zerocopy},
    {.name = "timestamp", .run = complete_timestamp},
    {.name = "recvmmsg", .run = receive_messages},
    {.name = "recvmmsg_one", .run = wait_for_one},
    {.name = "sendmmsg", .run = send_many},
    {.name = "short_datagram", .run = short_datagram},
    {.name = "short_address", .run = short_address, .ends_early = 1},
    {.name = "short_nonblocking", .run = short_nonblocking},
    {0},
};
