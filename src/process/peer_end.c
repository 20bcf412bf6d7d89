// SPDX-License-Identifier: MIT
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
#include "sockets.h"

enum {
	MAX_REPLIES = 1 << 12,
	LINK_BYTES = 64,
	BUFFER_BYTES = 32 << 10,
};

bool peer_end_parse(const char *link, uint64_t *ret_inode, bool *ret_is_socket)
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
	ret->pid = pid;
	ret->tid = tid;
	return peer_end_parse(link, &ret->inode, &ret->is_socket);
}

// Returns the key of what is looked for: its inode. Thousands of threads may wait for one pipe, and
// thousands of descriptors refer to it: each descriptor is compared once, with the first that wants
// it.
static uint64_t key_of(const struct peer_wanted *wanted)
{
	return wanted->is_socket ? wanted->peer_inode : wanted->inode;
}

static int compare_wanted(const void *a_pointer, const void *b_pointer)
{
	const struct peer_wanted *a = *(struct peer_wanted *const *)a_pointer;
	const struct peer_wanted *b = *(struct peer_wanted *const *)b_pointer;

	if (a->is_socket != b->is_socket)
		return a->is_socket ? 1 : -1;
	if (key_of(a) != key_of(b))
		return key_of(a) < key_of(b) ? -1 : 1;
	return a->is_written - b->is_written;
}

struct search {
	struct peer_wanted **wanted;   // sorted, each once
	size_t n, n_links, n_left_out; // how many descriptors were looked at, and were not
};

// Returns the first that wants such a descriptor.
static size_t find_wanted(const struct search *search, uint64_t inode, bool is_socket)
{
	size_t low = 0, high = search->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct peer_wanted *wanted = search->wanted[middle];
		if (wanted->is_socket < is_socket ||
		    (wanted->is_socket == is_socket && key_of(wanted) < inode))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
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

// Finds all unix sockets with their peers, with sock_diag(7).
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

// Finds them for one process, whose threads share a network namespace: its first wait tells which.
static void find_tcp_of(struct peer_wanted *wanted, size_t n)
{
	_cleanup_free_ struct tcp_wanted *tcp = memory_alloc_zeroed(n, sizeof(*tcp));
	size_t n_tcp = 0;

	for (size_t i = 0; i < n; i++)
		if (wanted[i].is_socket && wanted[i].peer_inode == 0)
			tcp[n_tcp++].inode = wanted[i].inode;
	if (n_tcp == 0)
		return;
	tcp_peer_find(wanted[0].pid, wanted[0].tid, tcp, n_tcp);
	n_tcp = 0;
	for (size_t i = 0; i < n; i++)
		if (wanted[i].is_socket && wanted[i].peer_inode == 0)
			wanted[i].peer_inode = tcp[n_tcp++].peer_inode;
}

// Finds them for all processes; `wanted` has each process's entries together.
static void find_tcp_peers(struct peer_wanted *wanted, size_t n)
{
	for (size_t first = 0, end; first < n; first = end) {
		for (end = first + 1; end < n && wanted[end].pid == wanted[first].pid;)
			end++;
		find_tcp_of(wanted + first, end - first);
	}
}

// True if the descriptor is an end that is written to, or, without is_written, one that is read. An
// end that is open both ways counts as either.
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

static void take_descriptor(const struct search *search, int pid, uint64_t inode, bool is_socket,
                            int directory_fd, const char *name)
{
	for (size_t i = find_wanted(search, inode, is_socket); i < search->n; i++) {
		struct peer_wanted *wanted = search->wanted[i];
		if (wanted->is_socket != is_socket || key_of(wanted) != inode)
			return;
		const bool is_known = wanted->n_pids > 0 && wanted->last_pid == pid;
		if (is_known || (!is_socket && !is_way(directory_fd, name, !wanted->is_written)))
			continue;
		wanted->last_pid = pid;
		if (wanted->n_pids < PEER_MAX)
			wanted->pids[wanted->n_pids] = pid;
		wanted->n_pids++;
	}
}

static void look_at_process(struct search *search, int pid)
{
	char path[LINK_BYTES], link[LINK_BYTES];
	uint64_t inode;
	bool is_socket;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *directory = opendir(path);
	for (const struct dirent *entry; directory && (entry = readdir(directory));) {
		if (entry->d_name[0] == '.')
			continue;
		if (search->n_links == PEER_MAX_DESCRIPTORS) {
			search->n_left_out++;
			continue;
		}
		search->n_links++;
		const ssize_t size =
		    readlinkat(dirfd(directory), entry->d_name, link, sizeof(link) - 1);
		link[size > 0 ? size : 0] = '\0';
		if (peer_end_parse(link, &inode, &is_socket) && inode != 0)
			take_descriptor(search, pid, inode, is_socket, dirfd(directory),
			                entry->d_name);
	}
	if (directory)
		closedir(directory);
}

// Keeps only the first of equal ones.
static void leave_out_equal(struct search *search)
{
	size_t kept = 0;

	for (size_t i = 0; i < search->n; i++)
		if (i == 0 || compare_wanted(&search->wanted[i], &search->wanted[kept - 1]) != 0)
			search->wanted[kept++] = search->wanted[i];
	search->n = kept;
}

// Gives what was found for the first of equal ones to the others.
static void give_to_equal(const struct search *search, struct peer_wanted *wanted, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct peer_wanted *const key = &wanted[i];
		struct peer_wanted **found = bsearch(&key, search->wanted, search->n,
		                                     sizeof(*search->wanted), compare_wanted);
		if (!found || *found == key)
			continue;
		memcpy(key->pids, (*found)->pids, sizeof(key->pids));
		key->n_pids = (*found)->n_pids;
	}
}

static void look_at_all(struct search *search)
{
	DIR *directory = opendir("/proc");

	for (const struct dirent *entry; directory && (entry = readdir(directory));)
		if (atoi(entry->d_name) > 0)
			look_at_process(search, atoi(entry->d_name));
	if (directory)
		closedir(directory);
}

size_t peer_end_find(struct peer_wanted *wanted, size_t n, const int *pids, size_t n_pids)
{
	_cleanup_free_ struct peer_wanted **sorted = memory_alloc_zeroed(n + 1, sizeof(*sorted));
	struct search search = {.wanted = sorted, .n = n};
	bool has_sockets = false;

	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		has_sockets |= wanted[i].is_socket;
		sorted[i] = &wanted[i];
	}
	if (has_sockets)
		find_peer_sockets(wanted, n);
	if (has_sockets)
		find_tcp_peers(wanted, n);
	qsort(sorted, n, sizeof(struct peer_wanted *), compare_wanted);
	leave_out_equal(&search);
	if (!pids)
		look_at_all(&search);
	for (size_t i = 0; pids && i < n_pids; i++)
		look_at_process(&search, pids[i]);
	give_to_equal(&search, wanted, n);
	return search.n_left_out;
}
