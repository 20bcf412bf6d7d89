// SPDX-License-Identifier: MIT
// sockets: tells what the sockets of a network namespace are, from the kernel's tables in
// /proc/PID/net.
#pragma once

#include <stdbool.h>
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
