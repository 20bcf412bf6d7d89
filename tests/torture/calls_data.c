// SPDX-License-Identifier: MIT
// Calls that move much data through blocking descriptors: each moves all of it, and what arrives is
// what was sent. And calls that move less for a reason of their own, which they must go on to do.
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "torture.h"

#define BLOCK 300000

static char data[BLOCK + 251]; // 0..250, over and over

static void __attribute__((constructor)) fill(void)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i % 251);
}

// A channel and the position in its endless stream.
struct channel {
	struct kind *kind;
	int in, out;
	long sent, received;
	int is_ready;
};

static const char *next(const struct channel *channel)
{
	return data + channel->sent % 251;
}

// Counts what a call sent; all but the whole is a fault.
static void note_sent(struct channel *channel, long wanted, long result)
{
	if (result != wanted)
		fault(channel->kind, "sent", result);
	if (result > 0)
		channel->sent += result;
}

static void check_received(struct channel *channel, const char *bytes, long n)
{
	if (n > 0 && memcmp(bytes, data + channel->received % 251, (size_t)n) != 0)
		fault(channel->kind, "other data, at", channel->received);
	channel->received += n > 0 ? n : 0;
}

// Now fast, now slow, so that the sender blocks in all positions.
static void *receive_slowly(void *argument)
{
	struct channel *channel = argument;
	static _Thread_local char bytes[40000];

	for (;;) {
		const long n = read(channel->in, bytes, (size_t)(1000 + random_below(39000)));
		if (n <= 0)
			return NULL;
		check_received(channel, bytes, n);
		if (random_below(3) == 0)
			usleep((useconds_t)random_below(3000));
	}
}

enum medium { PIPE, UNIX, TCP };

static void open_channel(struct channel *channel, struct kind *kind, enum medium medium,
                         void *(*helper)(void *))
{
	int fds[2];

	if (channel->is_ready)
		return;
	if (medium == PIPE && pipe(fds))
		die("pipe");
	if (medium == UNIX && socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		die("socketpair");
	if (medium == TCP)
		pair_tcp(fds);
	*channel = (struct channel){.kind = kind, .in = fds[0], .out = fds[1], .is_ready = 1};
	if (helper)
		help(helper, channel);
}

FRAME void move_write_pipe(struct kind *kind)
{
	static struct channel channel;

	open_channel(&channel, kind, PIPE, receive_slowly);
	note_sent(&channel, BLOCK, write(channel.out, next(&channel), BLOCK));
}

FRAME void move_write_unix(struct kind *kind)
{
	static struct channel channel;

	open_channel(&channel, kind, UNIX, receive_slowly);
	note_sent(&channel, BLOCK, write(channel.out, next(&channel), BLOCK));
}

FRAME void move_send_tcp(struct kind *kind)
{
	static struct channel channel;

	open_channel(&channel, kind, TCP, receive_slowly);
	note_sent(&channel, BLOCK, send(channel.out, next(&channel), BLOCK, 0));
}

enum { N_PARTS = 7 };

static void split(const char *bytes, struct iovec parts[N_PARTS])
{
	long at = 0;

	for (int i = 0; i < N_PARTS; i++) {
		const long n = i == N_PARTS - 1 ? BLOCK - at : i * 13001;
		parts[i] = (struct iovec){(char *)bytes + at, (size_t)n};
		at += n;
	}
}

FRAME void move_writev_pipe(struct kind *kind)
{
	static struct channel channel;
	struct iovec parts[N_PARTS];

	open_channel(&channel, kind, PIPE, receive_slowly);
	split(next(&channel), parts);
	note_sent(&channel, BLOCK, writev(channel.out, parts, N_PARTS));
}

FRAME void move_writev_tcp(struct kind *kind)
{
	static struct channel channel;
	struct iovec parts[N_PARTS];

	open_channel(&channel, kind, TCP, receive_slowly);
	split(next(&channel), parts);
	note_sent(&channel, BLOCK, writev(channel.out, parts, N_PARTS));
}

FRAME void move_sendmsg_unix(struct kind *kind)
{
	static struct channel channel;
	struct iovec parts[N_PARTS];
	const struct msghdr message = {.msg_iov = parts, .msg_iovlen = N_PARTS};

	open_channel(&channel, kind, UNIX, receive_slowly);
	split(next(&channel), parts);
	note_sent(&channel, BLOCK, sendmsg(channel.out, &message, 0));
}

// A file that holds the data.
static int make_file(void)
{
	const int fd = (int)syscall(SYS_memfd_create, "data", 0);

	if (fd < 0 || write(fd, data, sizeof(data)) != (ssize_t)sizeof(data))
		die("memfd");
	return fd;
}

FRAME void move_sendfile(struct kind *kind)
{
	static struct channel channel;
	static int file;
	off_t offset;

	open_channel(&channel, kind, TCP, receive_slowly);
	if (!file)
		file = make_file();
	offset = channel.sent % 251;
	note_sent(&channel, BLOCK, sendfile(channel.out, file, &offset, BLOCK));
	if (offset != channel.sent % 251 + BLOCK - (channel.sent % 251 + BLOCK - offset))
		fault(kind, "offset", offset);
}

#define SPLICED (64 << 10)

// The pipe's 64 KiB go to a socket that is nearly always full.
FRAME void move_splice(struct kind *kind)
{
	static struct channel channel;
	static int fds[2];
	const int small = 4096;

	if (!channel.is_ready && pipe(fds))
		die("pipe");
	open_channel(&channel, kind, UNIX, receive_slowly);
	setsockopt(channel.out, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	if (write(fds[1], next(&channel), SPLICED) != SPLICED) {
		fault(kind, "filling", 0);
		return;
	}
	long left = SPLICED;
	const long n = splice(fds[0], NULL, channel.out, NULL, SPLICED, 0);
	note_sent(&channel, SPLICED, n);
	for (left -= n > 0 ? n : 0; left > 0;) {
		const long more = splice(fds[0], NULL, channel.out, NULL, (size_t)left, 0);
		if (more <= 0)
			die("splice");
		left -= more;
		channel.sent += more;
	}
}

static void *send_in_pieces(void *argument)
{
	struct channel *channel = argument;

	for (;;) {
		const long n = 1 + random_below(30000);
		if (write(channel->out, next(channel), (size_t)n) != n)
			fault(channel->kind, "short write", n);
		channel->sent += n;
		if (random_below(2))
			usleep((useconds_t)random_below(2000));
	}
	return NULL;
}

#define WANTED 100000

FRAME void receive_all(struct channel *channel, struct kind *kind, enum medium medium)
{
	static _Thread_local char bytes[WANTED];

	open_channel(channel, kind, medium, send_in_pieces);
	const long n = recv(channel->in, bytes, WANTED, MSG_WAITALL);
	if (n != WANTED)
		fault(kind, "received", n);
	check_received(channel, bytes, n);
}

FRAME void move_recv_waitall(struct kind *kind)
{
	static struct channel channel;

	receive_all(&channel, kind, TCP);
}

FRAME void move_recv_waitall_unix(struct kind *kind)
{
	static struct channel channel;

	receive_all(&channel, kind, UNIX);
}

FRAME void move_recvmsg_waitall(struct kind *kind)
{
	static struct channel channel;
	static char bytes[WANTED];
	struct iovec parts[] = {{bytes, 30000}, {bytes + 30000, WANTED - 30000}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

	open_channel(&channel, kind, TCP, send_in_pieces);
	const long n = recvmsg(channel.in, &message, MSG_WAITALL);
	if (n != WANTED)
		fault(kind, "received", n);
	check_received(&channel, bytes, n);
}

// Less than was asked for, and no more will come until this very thread has read it.
static void expect_short(struct channel *channel, long result, long least, long most)
{
	static _Thread_local char bytes[BLOCK];

	if (result < least || result > most)
		fault(channel->kind, "moved", result);
	for (long n; result > 0; result -= n) {
		n = read(channel->in, bytes, (size_t)result);
		if (n <= 0)
			die("read");
		check_received(channel, bytes, n);
	}
}

static int file_for(struct channel *channel, struct kind *kind, off_t *ret_offset)
{
	static _Thread_local int file;

	open_channel(channel, kind, PIPE, NULL);
	if (!file)
		file = make_file();
	*ret_offset = channel->received % 251;
	return file;
}

FRAME void short_sendfile_to_pipe(struct kind *kind)
{
	static struct channel channel;
	off_t offset;
	const int file = file_for(&channel, kind, &offset);

	expect_short(&channel, sendfile(channel.out, file, &offset, BLOCK), 4096, 65536);
}

FRAME void short_splice_to_pipe(struct kind *kind)
{
	static struct channel channel;
	off_t offset;
	const int file = file_for(&channel, kind, &offset);

	expect_short(&channel, splice(file, &offset, channel.out, NULL, BLOCK, 0), 4096, 65536);
}

FRAME void short_splice_from_pipe(struct kind *kind)
{
	static struct channel channel;
	static int fds[2];
	const long n = 1 + random_below(8000);

	if (!channel.is_ready && pipe(fds))
		die("pipe");
	open_channel(&channel, kind, UNIX, NULL);
	if (write(fds[1], data + channel.received % 251, (size_t)n) != n)
		fault(kind, "filling", n);
	expect_short(&channel, splice(fds[0], NULL, channel.out, NULL, 1 << 20, 0), n, n);
}

// The sender leaves in the middle.
FRAME void short_recv_waitall(struct kind *kind)
{
	char bytes[100];
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) || write(fds[1], bytes, 10) != 10)
		die("socketpair");
	close(fds[1]);
	const long n = recv(fds[0], bytes, sizeof(bytes), MSG_WAITALL);
	if (n != 10)
		fault(kind, "received", n);
	close(fds[0]);
}

#define FILE_LIMIT (1 << 20)

// The file is nearly as large as RLIMIT_FSIZE allows. Whoever writes on gets SIGXFSZ, and dies.
FRAME void short_write_at_limit(struct kind *kind)
{
	const struct rlimit limit = {FILE_LIMIT, FILE_LIMIT};
	const int room = 100000 + random_below(100000);
	static int fd;

	if (!fd) {
		setrlimit(RLIMIT_FSIZE, &limit);
		fd = (int)syscall(SYS_memfd_create, "limited", 0);
	}
	lseek(fd, FILE_LIMIT - room, SEEK_SET);
	const long n = write(fd, data, BLOCK);
	if (n != room)
		fault(kind, "written", n);
}

struct kind data_kinds[] = {
    {.name = "write_pipe", .run = move_write_pipe},
    {.name = "write_unix", .run = move_write_unix},
    {.name = "send_tcp", .run = move_send_tcp},
    {.name = "writev_pipe", .run = move_writev_pipe},
    {.name = "writev_tcp", .run = move_writev_tcp},
    {.name = "sendmsg_unix", .run = move_sendmsg_unix},
    {.name = "sendfile", .run = move_sendfile},
    {.name = "splice", .run = move_splice},
    {.name = "recv_waitall", .run = move_recv_waitall},
    {.name = "recv_waitall_unix", .run = move_recv_waitall_unix, .ends_early = 1},
    {.name = "recvmsg_waitall", .run = move_recvmsg_waitall},
    {.name = "short_sendfile_to_pipe", .run = short_sendfile_to_pipe},
    {.name = "short_splice_to_pipe", .run = short_splice_to_pipe},
    {.name = "short_splice_from_pipe", .run = short_splice_from_pipe},
    {.name = "short_recv_waitall", .run = short_recv_waitall},
    {.name = "short_write_at_limit", .run = short_write_at_limit},
    {0},
};
