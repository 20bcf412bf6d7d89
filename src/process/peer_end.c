#include "peer_end.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "memory.h"

enum {
	MAX_DESCRIPTORS = 1 << 18, // descriptors that are looked at, of all processes
	MAX_REPLIES = 1 << 12,
	LINK_BYTES = 64,
	BUFFER_BYTES = 32 << 10,
};

// "pipe:[4711]" or "socket:[4711]".
static bool parse_link(const char *link, uint64_t *ret_inode, bool *ret_is_socket)
{
	*ret_is_socket = link[0] == 's';
	return sscanf(link, *ret_is_socket ? "socket:[%" SCNu64 "]" : "pipe:[%" SCNu64 "]",
	              ret_inode) == 1;
}

bool peer_end_read(int pid, int tid, int fd, struct peer_wanted *ret)
{
	char path[LINK_BYTES], link[LINK_BYTES];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", pid, tid, fd);
	const ssize_t n = readlink(path, link, sizeof(link) - 1);
	if (n <= 0)
		return false;
	link[n] = '\0';
	return parse_link(link, &ret->inode, &ret->is_socket);
}

static void take_socket(struct peer_wanted *wanted, size_t n, const struct nlmsghdr *header)
{
	const struct unix_diag_msg *message = NLMSG_DATA(header);
	const struct rtattr *attribute = (const struct rtattr *)(message + 1);
	int left = (int)(header->nlmsg_len - NLMSG_LENGTH(sizeof(*message)));
	uint32_t peer = 0;

	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left))
		if (attribute->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(attribute) >= sizeof(peer))
			memcpy(&peer, RTA_DATA(attribute), sizeof(peer));
	for (size_t i = 0; i < n; i++)
		if (wanted[i].is_socket && wanted[i].inode == message->udiag_ino)
			wanted[i].peer_inode = peer;
}

// All unix sockets with their peers, by sock_diag(7).
static void find_peer_sockets(struct peer_wanted *wanted, size_t n)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} ask = {
	    .header = {.nlmsg_len = sizeof(ask),
	               .nlmsg_type = SOCK_DIAG_BY_FAMILY,
	               .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	    .request = {.sdiag_family = AF_UNIX,
	                .udiag_states = UINT32_MAX,
	                .udiag_show = UDIAG_SHOW_PEER},
	};
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	_cleanup_free_ char *buffer = memory_alloc(BUFFER_BYTES);

	if (fd < 0 || send(fd, &ask, sizeof(ask), 0) != sizeof(ask))
		return;
	for (int i = 0; i < MAX_REPLIES; i++) {
		const ssize_t size = recv(fd, buffer, BUFFER_BYTES, 0);
		if (size <= 0)
			return;
		size_t left = (size_t)size;
		for (const struct nlmsghdr *header = (const struct nlmsghdr *)buffer;
		     NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
			if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
				return; // the end, or an error
			if (header->nlmsg_len >= NLMSG_LENGTH(sizeof(struct unix_diag_msg)))
				take_socket(wanted, n, header);
		}
	}
}

// True if the descriptor is the end of a pipe that is written to. One of both ways is either.
static bool is_way(int directory_fd, const char *name, bool is_written)
{
	char path[LINK_BYTES], text[LINK_BYTES];
	unsigned int flags = 0;

	snprintf(path, sizeof(path), "../fdinfo/%.16s", name);
	_cleanup_close_ int fd = openat(directory_fd, path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	const char *line = strstr(text, "flags:");
	if (!line || sscanf(line, "flags: %o", &flags) != 1)
		return false;
	return (flags & O_ACCMODE) == (is_written ? O_WRONLY : O_RDONLY) ||
	       (flags & O_ACCMODE) == O_RDWR;
}

static bool is_peer(const struct peer_wanted *wanted, uint64_t inode, bool is_socket,
                    int directory_fd, const char *name)
{
	if (wanted->is_socket != is_socket)
		return false;
	if (is_socket)
		return wanted->peer_inode != 0 && wanted->peer_inode == inode;
	return wanted->inode == inode && is_way(directory_fd, name, !wanted->is_written);
}

static void add_pid(struct peer_wanted *wanted, int pid)
{
	if (wanted->n_pids > 0 && wanted->pids[wanted->n_pids - 1] == pid)
		return;
	if (wanted->n_pids < PEER_MAX)
		wanted->pids[wanted->n_pids++] = pid;
}

static void look_at_process(struct peer_wanted *wanted, size_t n, int pid, size_t *n_links)
{
	char path[LINK_BYTES], link[LINK_BYTES];
	uint64_t inode;
	bool is_socket;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *directory = opendir(path);
	for (const struct dirent *entry; directory && (entry = readdir(directory));) {
		if (entry->d_name[0] == '.' || ++*n_links > MAX_DESCRIPTORS)
			continue;
		const ssize_t size =
		    readlinkat(dirfd(directory), entry->d_name, link, sizeof(link) - 1);
		link[size > 0 ? size : 0] = '\0';
		if (!parse_link(link, &inode, &is_socket))
			continue;
		for (size_t i = 0; i < n; i++)
			if (is_peer(&wanted[i], inode, is_socket, dirfd(directory), entry->d_name))
				add_pid(&wanted[i], pid);
	}
	if (directory)
		closedir(directory);
}

void peer_end_find(struct peer_wanted *wanted, size_t n)
{
	bool has_sockets = false;
	size_t n_links = 0;

	for (size_t i = 0; i < n; i++)
		has_sockets |= wanted[i].is_socket;
	if (has_sockets)
		find_peer_sockets(wanted, n);
	DIR *directory = n > 0 ? opendir("/proc") : NULL;
	for (const struct dirent *entry; directory && (entry = readdir(directory));)
		if (atoi(entry->d_name) > 0)
			look_at_process(wanted, n, atoi(entry->d_name), &n_links);
	if (directory)
		closedir(directory);
}
