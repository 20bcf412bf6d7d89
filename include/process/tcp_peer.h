// SPDX-License-Identifier: MIT
// tcp_peer: finds the socket of the same machine that is the other end of a TCP connection, in the
// kernel's tables (/proc/PID/net/tcp and tcp6, proc(5)): the one with the same two addresses,
// swapped. Both must be in one network namespace.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tcp_end {
	uint32_t address[4]; // as the kernel writes it; IPv4's as in IPv6 (::ffff:1.2.3.4)
	uint32_t port;
};

struct tcp_wanted {
	uint64_t inode;               // of this socket
	uint64_t peer_inode;          // 0: none, or not known
	struct tcp_end local, remote; // private to tcp_peer.c
};

// Finds them in the texts of both tables; NULL: there is no such table.
void tcp_peer_parse(const char *const tables[2], struct tcp_wanted *wanted, size_t n);

// Does the same with the tables of the thread's network namespace.
void tcp_peer_find(int pid, int tid, struct tcp_wanted *wanted, size_t n);
