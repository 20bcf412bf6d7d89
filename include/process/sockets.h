// SPDX-License-Identifier: MIT
// sockets: tells what the sockets of a network namespace are, from the kernel's tables in
// /proc/PID/net.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct socket_wanted {
	uint64_t inode; // as in "socket:[4711]"
	char *meaning;  // "tcp 10.0.0.1:80 -> 10.0.0.2:4711", "unix /run/x"; owned by the caller;
	                // NULL: not found (yet)
};

// Looks up all that have no meaning yet, in the tables that process `pid` sees through its thread
// `tid`. That takes milliseconds, even for a few: the kernel goes through all sockets.
void sockets_find(int pid, int tid, struct socket_wanted *wanted, size_t n);

// Does the same from the text of one table, named like its file: "tcp", "tcp6", "udp", "udp6" or
// "unix" (proc(5)).
void sockets_parse(const char *table, const char *text, struct socket_wanted *wanted, size_t n);

// Finds the socket of the same machine that is the other end of a TCP connection, in the
// kernel's tables (/proc/PID/net/tcp and tcp6, proc(5)): the one with the same two addresses,
// swapped. Both must be in one network namespace.
struct tcp_end {
	uint32_t address[4]; // as the kernel writes it; IPv4's as in IPv6 (::ffff:1.2.3.4)
	uint32_t port;
};

struct tcp_wanted {
	uint64_t inode;               // of this socket
	uint64_t peer_inode;          // 0: none, or not known
	struct tcp_end local, remote; // private
};

// Finds them in the texts of both tables; NULL: there is no such table.
void tcp_peer_parse(const char *const tables[2], struct tcp_wanted *wanted, size_t n);

// Does the same with the tables of the thread's network namespace.
void tcp_peer_find(int pid, int tid, struct tcp_wanted *wanted, size_t n);
