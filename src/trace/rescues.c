// SPDX-License-Identifier: MIT
#include "rescues.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "syscall_rest.h"

static struct rescue {
	_Atomic int tid; // 0: free
	struct syscall_rest rest;
} * rescues; // MAX_RESCUES; NULL: not shared

void rescues_share(void)
{
	void *memory = mmap(NULL, MAX_RESCUES * sizeof(*rescues), PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	rescues = memory == MAP_FAILED ? NULL : memory;
}

static struct rescue *find(int tid)
{
	for (size_t i = 0; rescues && i < MAX_RESCUES; i++)
		if (rescues[i].tid == tid)
			return &rescues[i];
	return NULL;
}

void rescues_drop(int tid)
{
	struct rescue *rescue = find(tid);

	if (rescue)
		rescue->tid = 0;
}

void rescues_keep(int tid, const struct syscall_rest *rest)
{
	rescues_drop(tid);
	struct rescue *rescue = find(0);
	if (!rescue)
		return;
	rescue->rest = *rest;
	rescue->tid = tid;
}

size_t rescues_each(void (*function)(int tid, struct syscall_rest *rest))
{
	size_t n_left = 0;

	for (size_t i = 0; rescues && i < MAX_RESCUES; i++) {
		if (rescues[i].tid)
			function(rescues[i].tid, &rescues[i].rest);
		n_left += rescues[i].tid != 0;
	}
	return n_left;
}

bool rescues_any(void)
{
	for (size_t i = 0; rescues && i < MAX_RESCUES; i++)
		if (rescues[i].tid)
			return true;
	return false;
}
