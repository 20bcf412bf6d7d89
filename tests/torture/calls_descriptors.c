// SPDX-License-Identifier: MIT
// Descriptors: those that come along with bytes, and a thread that has some of its own.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "torture.h"

static long receive_with_room(int fd, char *bytes, size_t size, int *ret_fd)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec part = {bytes, size};
	struct msghdr message = {.msg_iov = &part,
	                         .msg_iovlen = 1,
	                         .msg_control = control,
	                         .msg_controllen = sizeof(control)};
	const long n = recvmsg(fd, &message, MSG_WAITALL);
	const struct cmsghdr *header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(header), sizeof(int));
	return n;
}

static void send_descriptor(int fd, const char *bytes, size_t size, int sent_fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {(char *)bytes, size};
	struct msghdr message = {.msg_iov = &part,
	                         .msg_iovlen = 1,
	                         .msg_control = control,
	                         .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &sent_fd, sizeof(int));
	if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
		die("sendmsg");
}

static void *send_descriptors(void *argument)
{
	const int fd = *(int *)argument, sent_fd = open("/dev/null", O_RDONLY);
	char bytes[50] = {0}, byte;

	do {
		if (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) < 0)
			break;
		usleep(100);
		send_descriptor(fd, bytes, sizeof(bytes), sent_fd);
	} while (read(fd, &byte, 1) == 1);
	return NULL;
}

// The second half of what is waited for has a descriptor with it. The call may be cut before that
// half; it must not lose the descriptor.
FRAME void take_descriptor(struct kind *kind)
{
	static int fds[2];
	char bytes[100];
	int fd = -1;

	if (!fds[1]) {
		pair_unix(fds, SOCK_STREAM);
		help(send_descriptors, &fds[1]);
	}
	for (long n, left = sizeof(bytes); left > 0; left -= n) {
		n = receive_with_room(fds[0], bytes, (size_t)left, &fd);
		if (n <= 0)
			die("recvmsg");
	}
	if (fd < 0)
		fault(kind, "no descriptor", fd);
	else
		close(fd);
	if (write(fds[0], "", 1) != 1)
		die("write");
}

#define BEFORE 1000
#define BEHIND 3000

// Each time it is asked: bytes in pieces, some with a descriptor, more bytes.
static void *send_around_descriptor(void *argument)
{
	const int fd = *(int *)argument, sent_fd = open("/dev/null", O_RDONLY);
	char bytes[50] = {0}, byte;

	while (read(fd, &byte, 1) == 1)
		for (size_t sent = 0; sent < BEFORE + BEHIND; sent += sizeof(bytes)) {
			if (sent == BEFORE - sizeof(bytes))
				send_descriptor(fd, bytes, sizeof(bytes), sent_fd);
			else if (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) < 0)
				return NULL;
		}
	return NULL;
}

// A descriptor ends the message that it comes with, though there is no room for it, and though more
// is asked for than ever comes.
FRAME void end_at_descriptor(struct kind *kind)
{
	static char bytes[2 * (BEFORE + BEHIND)];
	static int fds[2];
	struct iovec part = {bytes, sizeof(bytes)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (!fds[1]) {
		pair_unix(fds, SOCK_STREAM);
		help(send_around_descriptor, &fds[1]);
	}
	if (write(fds[0], "", 1) != 1)
		die("write");
	long n = 0;
	do // under a filter it is left short, and counted
		n += recvmsg(fds[0], &message, MSG_WAITALL);
	while (n > 0 && n < BEFORE && prctl(PR_GET_SECCOMP));
	if (n != BEFORE)
		fault(kind, "not ended at the descriptor", n);
	while (n > 0 && n < BEFORE + BEHIND)
		n += recv(fds[0], bytes, (size_t)(BEFORE + BEHIND - n), MSG_WAITALL);
}

#define REPLY 10
#define QUESTIONS 100
#define PATIENCE_MS 10000
#define MAX_OPEN 1024

// Replies to each byte. Who waits for more than that gets it after a while.
static void *reply(void *argument)
{
	struct pollfd asked = {.fd = *(int *)argument, .events = POLLIN};
	const char bytes[2 * REPLY] = {0};
	char question;

	for (;;) {
		const int ready = poll(&asked, 1, PATIENCE_MS);
		if (ready > 0 && read(asked.fd, &question, 1) != 1)
			return NULL;
		send(asked.fd, bytes, REPLY, MSG_NOSIGNAL);
	}
}

// The thread has descriptors of its own: that of the same number of its process waits for more.
FRAME void own_descriptors(struct kind *kind)
{
	static int fds[2];
	const int least = 2 * REPLY;
	char bytes[2 * REPLY];
	int own[2];

	if (!fds[1]) {
		pair_unix(fds, SOCK_STREAM);
		setsockopt(fds[0], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
		pair_unix(own, SOCK_STREAM);
		if (unshare(CLONE_FILES))
			die("unshare");
		dup2(own[0], fds[0]);
		dup2(own[1], fds[1]);
		// The copies of what the others are to close, and to see closed.
		for (int fd = STDERR_FILENO + 1; fd < MAX_OPEN; fd++)
			if (fd != fds[0] && fd != fds[1])
				close(fd);
		help(reply, &fds[1]);
	}
	for (int i = 0; i < QUESTIONS; i++) {
		send(fds[0], "?", 1, 0);
		const long n = read(fds[0], bytes, sizeof(bytes));
		if (n != REPLY)
			fault(kind, "replied", n);
	}
}
