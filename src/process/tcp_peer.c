// SPDX-License-Identifier: MIT
#include "tcp_peer.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "proc.h"

enum {
	MAX_TABLE_BYTES = 4 << 20, // about 27,000 sockets
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
	_cleanup_free_ char *v4 = proc_read_all(pid, tid, "net/tcp", MAX_TABLE_BYTES, &size);
	_cleanup_free_ char *v6 = proc_read_all(pid, tid, "net/tcp6", MAX_TABLE_BYTES, &size);

	tcp_peer_parse((const char *const[]){v4, v6}, wanted, n);
}
