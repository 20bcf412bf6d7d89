// SPDX-License-Identifier: MIT
#include "listening.h"

#include "clock.h"

// Less the time when a wait began, while that goes on.
static volatile int64_t waited_ns;

int listening_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	waited_ns -= clock_now_ns();
	const int result = poll(fds, n, timeout_ms);
	waited_ns += clock_now_ns();
	return result;
}

int64_t listening_waited_ns(void)
{
	return waited_ns < 0 ? waited_ns + clock_now_ns() : waited_ns;
}
