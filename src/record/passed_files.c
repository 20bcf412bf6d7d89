// SPDX-License-Identifier: MIT
#include "passed_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "memory.h"

enum {
	BATCH = 32,          // files in one message; the kernel takes SCM_MAX_FD, 253
	MAX_WAITING = 16384, // files at the reader: as many as it takes modules
};

struct message {
	struct passed_file files[BATCH];
	size_t n;
	int fds[BATCH];
};

union control {
	char bytes[CMSG_SPACE(BATCH * sizeof(int))];
	struct cmsghdr aligned;
};

void passed_files_deinit(struct passed_files *files)
{
	free(files->sent);
}

static bool send_message(int socket, struct message *message)
{
	union control control = {.bytes = {0}};
	struct iovec part = {message->files, message->n * sizeof(*message->files)};
	struct msghdr header = {
	    .msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = control.bytes,
	    .msg_controllen = CMSG_SPACE(message->n * sizeof(int)),
	};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
	ssize_t sent;

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(message->n * sizeof(int));
	memcpy(CMSG_DATA(rights), message->fds, message->n * sizeof(int));
	do
		sent = sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent >= 0;
}

// Sends the next files from *next on. False: there are none, or they cannot be sent now.
static bool send_some(struct passed_files *files, const struct modules *modules, size_t *next)
{
	_cleanup_free_ struct message *message = memory_alloc_zeroed(1, sizeof(*message));
	size_t at = *next;

	for (; at < files->n && message->n < BATCH; at++) {
		const struct module *module = modules->items[at];
		if (files->sent[at] || module->fd < 0)
			continue;
		message->fds[message->n] = module->fd;
		message->files[message->n++] = (struct passed_file){
		    .number = (uint32_t)at,
		    .user = module->user,
		    .version = module->version,
		};
	}
	if (message->n == 0 || !send_message(files->socket, message))
		return false;
	for (size_t i = 0; i < message->n; i++)
		files->sent[message->files[i].number] = true;
	*next = at;
	return true;
}

void passed_files_send(struct passed_files *files, const struct modules *modules)
{
	size_t next = 0;

	if (files->socket == 0)
		return;
	files->sent =
	    memory_grow(files->sent, &files->capacity, modules->count, sizeof(*files->sent));
	while (files->n < modules->count)
		files->sent[files->n++] = false;
	while (send_some(files, modules, &next))
		;
}

void taken_files_deinit(struct taken_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		memory_cleanup_close(&files->items[i].fd);
	free(files->items);
	*files = (struct taken_files){0};
}

// Finds the descriptors of a message. Where this process may have no more, they are fewer than the
// files: those are then looked for by their paths.
static size_t find_descriptors(struct msghdr *header, int *ret)
{
	struct cmsghdr *rights = CMSG_FIRSTHDR(header);

	if (!rights || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS)
		return 0;
	const size_t n = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(ret, CMSG_DATA(rights), n * sizeof(int));
	return n;
}

static bool receive_message(int socket, struct message *message)
{
	union control control;
	struct iovec part = {message->files, sizeof(message->files)};
	struct msghdr header = {
	    .msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = control.bytes,
	    .msg_controllen = sizeof(control),
	};
	ssize_t size;

	do
		size = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (size < 0 && errno == EINTR);
	if (size <= 0)
		return false;
	message->n = (size_t)size / sizeof(*message->files);
	const size_t n_fds = find_descriptors(&header, message->fds);
	for (size_t i = 0; i < message->n; i++)
		message->files[i].fd = i < n_fds ? message->fds[i] : -1;
	return true;
}

void taken_files_receive(struct taken_files *files, int socket)
{
	_cleanup_free_ struct message *message = memory_alloc_zeroed(1, sizeof(*message));

	while (socket != 0 && files->n < MAX_WAITING && receive_message(socket, message))
		for (size_t i = 0; i < message->n; i++)
			*array_push(files->items, files->n, files->capacity) = message->files[i];
}

void taken_files_give(struct taken_files *files, size_t position, struct module *module)
{
	struct passed_file *file = &files->items[position];

	if (module->fd < 0 && file->fd >= 0) {
		module->fd = file->fd;
		module->version = file->version;
		module->user = file->user;
	} else {
		if (module->fd < 0)
			module->unreadable = "no more files could be opened";
		memory_cleanup_close(&file->fd);
	}
	*file = files->items[--files->n];
}
