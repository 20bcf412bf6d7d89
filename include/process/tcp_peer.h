// SPDX-License-Identifier: MIT
// tcp_peer: which socket of the same machine is the other end of a connection of TCP, by the
// kernel's tables (/proc/PID/net/tcp and tcp6, proc(5)): the one with the same two addresses,
// swapped. Both must be in one network namespace.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tcp_end {
	uint32_t address[4]; // as the kernel writes it; of IPv4 as IPv6 has it (::ffff:1.2.3.4)
	uint32_t port;
};

struct tcp_wanted {
	uint64_t inode;               // of the socket at hand
	uint64_t peer_inode;          // found; 0: none, or not known
	struct tcp_end local, remote; // private to tcp_peer.c
};

// Finds them in the texts of both tables, which are NULL where there is none.
void tcp_peer_parse(const char *const tables[2], struct tcp_wanted *wanted, size_t n);

// The same as the thread's network namespace has it.
void tcp_peer_find(int pid, int tid, struct tcp_wanted *wanted, size_t n);
