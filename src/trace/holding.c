// SPDX-License-Identifier: MIT
#include "holding.h"

#include <stddef.h>
#include <sys/mman.h>

#include "clock.h"

static struct shared {
	_Atomic unsigned int count; // wraps around
	_Atomic bool inside;
	_Atomic int64_t due_ns;
	_Atomic bool is_over;
} * shared; // NULL: not shared

void holding_share(void)
{
	void *memory =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	shared = memory == MAP_FAILED ? NULL : memory;
}

void holding_begin(void)
{
	if (!shared)
		return;
	shared->count++;
	shared->inside = true;
}

void holding_end(void)
{
	if (shared)
		shared->inside = false;
}

void holding_expect_end(int64_t duration_ns)
{
	if (shared)
		shared->due_ns = duration_ns ? clock_now_ns() + duration_ns : 0;
}

void holding_note_over(void)
{
	if (shared)
		shared->is_over = true;
}

bool holding_is_over(void)
{
	return shared && shared->is_over;
}

int64_t holding_due_ns(void)
{
	return shared ? shared->due_ns : 0;
}

unsigned int holding_now(void)
{
	return shared && shared->inside ? shared->count : 0;
}
