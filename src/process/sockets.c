// SPDX-License-Identifier: MIT
#include "sockets.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "proc.h"

enum {
	MAX_TABLE_BYTES = 1 << 20, // about 7,000 sockets
	ADDRESS_SIZE = INET6_ADDRSTRLEN + sizeof("[]:65535"),
	TCP_LISTEN = 0x0a, // the kernel's net/tcp_states.h
};

static bool is_wanted(const struct socket_wanted *wanted, size_t n, uint64_t inode)
{
	for (size_t i = 0; i < n; i++)
		if (wanted[i].inode == inode)
			return true;
	return false;
}

// Gives the meaning to all that want it: a socket may be wanted more than once.
static void give(struct socket_wanted *wanted, size_t n, uint64_t inode, const char *meaning)
{
	for (size_t i = 0; i < n; i++)
		if (wanted[i].inode == inode && !wanted[i].meaning)
			wanted[i].meaning = memory_strdup(meaning);
}

// Reads "0100007F:1F90", or 32 digits and the port: words of the address as they are in memory.
static bool read_address(const char *text, char ret[ADDRESS_SIZE], bool *ret_any)
{
	const char *colon = strchr(text, ':');
	const size_t digits = colon ? colon - text : 0;
	uint32_t words[4] = {0};
	char number[INET6_ADDRSTRLEN];

	if (digits != 8 && digits != 32)
		return false;
	for (size_t i = 0; i < digits / 8; i++)
		if (sscanf(text + 8 * i, "%8" SCNx32, &words[i]) != 1)
			return false;
	const unsigned long port = strtoul(colon + 1, NULL, 16);
	const bool v6 = digits == 32;
	inet_ntop(v6 ? AF_INET6 : AF_INET, words, number, sizeof(number));
	snprintf(ret, ADDRESS_SIZE, v6 ? "[%s]:%hu" : "%s:%hu", number, (unsigned short)port);
	*ret_any = port == 0;
	return true;
}

//   sl  local_address rem_address   st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
static void parse_internet(const char *table, const char *line, struct socket_wanted *wanted,
                           size_t n)
{
	char local_text[64], remote_text[64], local[ADDRESS_SIZE], remote[ADDRESS_SIZE];
	unsigned int state;
	uint64_t inode;
	bool any;

	if (sscanf(line, " %*[^:]: %63s %63s %x %*s %*s %*s %*s %*s %" SCNu64, local_text,
	           remote_text, &state, &inode) != 4)
		return;
	if (!is_wanted(wanted, n, inode) || !read_address(local_text, local, &any) ||
	    !read_address(remote_text, remote, &any))
		return;
	const bool tcp = table[0] == 't';
	_cleanup_free_ char *peer = memory_printf(" -> %s", remote);
	_cleanup_free_ char *meaning = memory_printf("%s %s%s", tcp ? "tcp" : "udp", local,
	                                             !any                         ? peer
	                                             : tcp && state == TCP_LISTEN ? " (listening)"
	                                                                          : "");
	give(wanted, n, inode, meaning);
}

// Gives a unix socket its meaning. A path may have line ends, and so look like the row of another
// socket: with two rows for one socket, it is not known which is right.
static void give_unix(struct socket_wanted *wanted, size_t n, uint64_t inode, const char *meaning)
{
	for (size_t i = 0; i < n; i++)
		if (wanted[i].inode == inode && wanted[i].meaning) {
			free(wanted[i].meaning);
			wanted[i].meaning = memory_printf("unix:[%" PRIu64 "]", inode);
		}
	give(wanted, n, inode, meaning);
}

// Parses Num RefCount Protocol Flags Type St Inode Path; without a path if it has no name.
static void parse_unix(const char *line, struct socket_wanted *wanted, size_t n)
{
	uint64_t inode;
	int path = 0;

	if (sscanf(line, "%*s %*s %*s %*s %*s %*s %" SCNu64 " %n", &inode, &path) != 1)
		return;
	if (!is_wanted(wanted, n, inode))
		return;
	_cleanup_free_ char *meaning = path && line[path]
	                                   ? memory_printf("unix %s", line + path)
	                                   : memory_printf("unix:[%" PRIu64 "]", inode);
	give_unix(wanted, n, inode, meaning);
}

void sockets_parse(const char *table, const char *text, struct socket_wanted *wanted, size_t n)
{
	const char *line = strchr(text, '\n'); // after the heading

	while (line && *++line) {
		const char *end = strchrnul(line, '\n');
		_cleanup_free_ char *own = memory_strndup(line, end - line);

		if (strcmp(table, "unix") == 0)
			parse_unix(own, wanted, n);
		else
			parse_internet(table, own, wanted, n);
		line = *end ? end : NULL;
	}
}

static bool all_found(const struct socket_wanted *wanted, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!wanted[i].meaning)
			return false;
	return true;
}

void sockets_find(int pid, int tid, struct socket_wanted *wanted, size_t n)
{
	static const char *const tables[] = {"unix", "tcp", "tcp6", "udp", "udp6"};
	size_t size;

	for (size_t i = 0; i < array_size(tables) && !all_found(wanted, n); i++) {
		_cleanup_free_ char *name = memory_printf("net/%s", tables[i]);
		_cleanup_free_ char *text = proc_read_all(pid, tid, name, MAX_TABLE_BYTES, &size);
		if (text)
			sockets_parse(tables[i], text, wanted, n);
	}
}
