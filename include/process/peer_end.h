// SPDX-License-Identifier: MIT
// peer_end: which processes have the other end of a pipe, of a connected unix socket, or of a
// connection of TCP within the machine.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PEER_MAX = 8,
	PEER_MAX_DESCRIPTORS = 1 << 18, // that are looked at, of all processes
};

struct peer_wanted {
	int pid, tid;    // whose end is at hand
	uint64_t inode;  // of that: as in "pipe:[4711]" or "socket:[4711]"
	bool is_socket;  // else a pipe
	bool is_written; // the end at hand is written to: whoever reads is wanted
	int pids[PEER_MAX];
	size_t n_pids; // found; of more than PEER_MAX the first are there

	// Private to peer_end.c.
	uint64_t peer_inode; // of a socket; 0: not known
	int last_pid;
};

// Finds them all in one pass over the descriptors of all processes that we may look at. Those of
// one process must be next to each other. Unix sockets of another network namespace than ours are
// not found. Returns how many descriptors there are beyond PEER_MAX_DESCRIPTORS, which are not
// looked at.
size_t peer_end_find(struct peer_wanted *wanted, size_t n);

// Fills in all but ->is_written for the thread's descriptor; false: neither pipe nor socket.
bool peer_end_read(int pid, int tid, int fd, struct peer_wanted *ret);

// The inode of "pipe:[4711]" or "socket:[4711]"; false: it is neither.
bool peer_end_parse(const char *link, uint64_t *ret_inode, bool *ret_is_socket);
