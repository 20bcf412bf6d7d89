// SPDX-License-Identifier: MIT
#include "holder_names.h"

#include <string.h>

#include "clock.h"

enum { MAX_AGE_NS = 100 * NS_PER_MS };

bool holder_names_read(struct holder_names *names, int pid, int tid, char ret[PROC_NAME_SIZE])
{
	const unsigned int place = (unsigned int)tid % N_HOLDER_NAMES;
	const int64_t now_ns = clock_now_ns();

	if (names->items[place].tid != tid || now_ns >= names->items[place].due_ns) {
		names->items[place].tid = 0;
		if (!proc_read_name(pid, tid, names->items[place].name))
			return false;
		names->items[place].tid = tid;
		names->items[place].due_ns = now_ns + MAX_AGE_NS;
	}
	memcpy(ret, names->items[place].name, PROC_NAME_SIZE);
	return true;
}
