// SPDX-License-Identifier: MIT
// /proc/PID/net/tcp and the like: the paths in unix are anybody's.
#include "fuzz.h"
#include "memory.h"
#include "sockets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const tables[] = {"tcp", "tcp6", "udp", "udp6", "unix"};
	struct socket_wanted wanted[] = {{.inode = 1}, {.inode = 4711}, {.inode = 0}};
	struct input input = {data, size};
	const char *table = tables[input_u8(&input) % array_size(tables)];
	_cleanup_free_ char *text = memory_strndup((const char *)input.data, input.left);

	sockets_parse(table, text, wanted, array_size(wanted));
	for (size_t i = 0; i < array_size(wanted); i++) {
		expect(!wanted[i].meaning || strlen(wanted[i].meaning) > 0);
		free(wanted[i].meaning);
	}
	struct tcp_wanted ends[] = {{.inode = 1}, {.inode = 4711}, {.inode = 0}};
	tcp_peer_parse((const char *const[]){text, text}, ends, array_size(ends));
	return 0;
}
