// peer_end: which processes have the other end of a pipe or of a connected unix socket.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PEER_MAX = 8 };

struct peer_wanted {
	uint64_t inode;  // of the end at hand: as in "pipe:[4711]" or "socket:[4711]"
	bool is_socket;  // else a pipe
	bool is_written; // the end at hand is written to: whoever reads is wanted
	int pids[PEER_MAX];
	size_t n_pids; // found

	// Private to peer_end.c.
	uint64_t peer_inode; // of a socket; 0: not known
};

// Finds them all in one pass over the descriptors of all processes that we may look at; a network
// namespace other than ours is not asked for its sockets.
void peer_end_find(struct peer_wanted *wanted, size_t n);

// What the thread's descriptor is, for ->inode and ->is_socket; false: neither.
bool peer_end_read(int pid, int tid, int fd, struct peer_wanted *ret);
