// SPDX-License-Identifier: MIT
#include "sockets.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdbool.h>
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

enum {
	MAX_TCP_TABLE_BYTES = 4 << 20, // about 27,000 sockets
	DIGITS_V4 = 8,
	DIGITS_V6 = 32,
	DIGITS_WORD = 8,
	N_TABLES = 2,
};

struct row {
	struct tcp_end local, remote;
	uint64_t inode;
};

// Parses "0100007F:1F90", or 32 digits and the port.
static bool parse_end(const char *text, struct tcp_end *ret)
{
	const char *colon = strchr(text, ':');
	const size_t digits = colon ? (size_t)(colon - text) : 0;
	const size_t first = digits == DIGITS_V4 ? 3 : 0;

	if (digits != DIGITS_V4 && digits != DIGITS_V6)
		return false;
	*ret = (struct tcp_end){.address = {0, 0, first ? 0xffff0000 : 0, 0}};
	for (size_t i = 0; i < digits / DIGITS_WORD; i++)
		if (sscanf(text + DIGITS_WORD * i, "%8" SCNx32, &ret->address[first + i]) != 1)
			return false;
	return sscanf(colon + 1, "%4" SCNx32, &ret->port) == 1;
}

//   sl  local_address rem_address   st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
static bool parse_row(const char *line, struct row *ret)
{
	char local[64], remote[64];

	return sscanf(line, " %*[0-9]: %63s %63s %*x %*s %*s %*s %*s %*s %" SCNu64, local, remote,
	              &ret->inode) == 3 &&
	       ret->inode != 0 && parse_end(local, &ret->local) && parse_end(remote, &ret->remote);
}

static bool is_same(const struct tcp_end *a, const struct tcp_end *b)
{
	return a->port == b->port && memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

static void note_ends(const struct row *row, struct tcp_wanted *wanted)
{
	if (wanted->inode != row->inode)
		return;
	wanted->local = row->local;
	wanted->remote = row->remote;
}

// Notes the peer, if it is one: a socket that listens has no port at the other end.
static void note_peer(const struct row *row, struct tcp_wanted *wanted)
{
	if (wanted->remote.port != 0 && is_same(&row->local, &wanted->remote) &&
	    is_same(&row->remote, &wanted->local))
		wanted->peer_inode = row->inode;
}

static void each_row(const char *table, struct tcp_wanted *wanted, size_t n,
                     void (*note)(const struct row *row, struct tcp_wanted *wanted))
{
	struct row row;

	for (const char *line = table; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!parse_row(line, &row))
			continue;
		for (size_t i = 0; i < n; i++)
			note(&row, &wanted[i]);
	}
}

void tcp_peer_parse(const char *const tables[2], struct tcp_wanted *wanted, size_t n)
{
	for (size_t i = 0; i < n; i++)
		wanted[i] = (struct tcp_wanted){.inode = wanted[i].inode};
	for (size_t i = 0; i < N_TABLES; i++)
		each_row(tables[i], wanted, n, note_ends);
	for (size_t i = 0; i < N_TABLES; i++)
		each_row(tables[i], wanted, n, note_peer);
}

void tcp_peer_find(int pid, int tid, struct tcp_wanted *wanted, size_t n)
{
	size_t size;
	_cleanup_free_ char *v4 = proc_read_all(pid, tid, "net/tcp", MAX_TCP_TABLE_BYTES, &size);
	_cleanup_free_ char *v6 = proc_read_all(pid, tid, "net/tcp6", MAX_TCP_TABLE_BYTES, &size);

	tcp_peer_parse((const char *const[]){v4, v6}, wanted, n);
}
