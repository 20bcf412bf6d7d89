// SPDX-License-Identifier: MIT
// peer_end: finds the processes that have the other end of a pipe, of a connected unix socket, or
// of a TCP connection within the machine.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PEER_MAX = 8,
	PEER_MAX_DESCRIPTORS = 1 << 18, // of all processes; no more are looked at
};

struct peer_wanted {
	int pid, tid;    // whose end is at hand
	uint64_t inode;  // of this end: as in "pipe:[4711]" or "socket:[4711]"
	bool is_socket;  // else a pipe
	bool is_written; // this end is written to: look for those that read
	int pids[PEER_MAX];
	size_t n_pids; // how many were found; only the first PEER_MAX are kept

	// Private to peer_end.c.
	uint64_t peer_inode; // of a socket; 0: not known
	int last_pid;
};

// Finds them all in one pass over the descriptors of these processes; NULL: of all that we may look
// at. Entries of the same process must be next to each other in `wanted`. Unix sockets of another
// network namespace than ours are not found. Returns how many descriptors there are beyond
// PEER_MAX_DESCRIPTORS, which are not looked at.
size_t peer_end_find(struct peer_wanted *wanted, size_t n, const int *pids, size_t n_pids);

// Fills in everything except ->is_written for the thread's descriptor. False if it is neither pipe
// nor socket.
bool peer_end_read(int pid, int tid, int fd, struct peer_wanted *ret);

// Parses the inode of "pipe:[4711]" or "socket:[4711]". False if it is neither.
bool peer_end_parse(const char *link, uint64_t *ret_inode, bool *ret_is_socket);
