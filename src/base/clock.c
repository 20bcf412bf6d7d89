// SPDX-License-Identifier: MIT
#include "clock.h"

#define MIN_STEP_NS (100 * NS_PER_MS)

enum { MAX_TRIES = 10 };

// Reads again where something else ran in between.
int64_t clock_offset_ns(void)
{
	int64_t offset_ns = 0;

	for (int i = 0; i < MAX_TRIES; i++) {
		const int64_t before_ns = clock_now_ns();
		offset_ns = clock_read_ns(CLOCK_REALTIME) - before_ns;
		if (clock_now_ns() - before_ns < NS_PER_MS)
			break;
	}
	return offset_ns;
}

int64_t clock_step_ns(int64_t since_ns)
{
	const int64_t step_ns = clock_offset_ns() - since_ns;

	return step_ns > -MIN_STEP_NS && step_ns < MIN_STEP_NS ? 0 : step_ns;
}
