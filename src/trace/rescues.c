// SPDX-License-Identifier: MIT
#include "rescues.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "syscall_rest.h"

static struct rescues {
	_Atomic size_t count;          // of places that were ever used: others are not looked at
	_Atomic int tids[MAX_RESCUES]; // 0: free
	struct syscall_rest rests[MAX_RESCUES];
} * rescues; // NULL: not shared

void rescues_share(void)
{
	void *memory =
	    mmap(NULL, sizeof(*rescues), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	rescues = memory == MAP_FAILED ? NULL : memory;
}

static size_t count_places(void)
{
	return rescues ? rescues->count : 0;
}

void rescues_drop(int tid)
{
	for (size_t i = 0; i < count_places(); i++)
		if (rescues->tids[i] == tid)
			rescues->tids[i] = 0;
}

void rescues_keep(int tid, const struct syscall_rest *rest)
{
	size_t place = 0;

	rescues_drop(tid);
	while (place < count_places() && rescues->tids[place])
		place++;
	if (!rescues || place == MAX_RESCUES)
		return;
	if (place == rescues->count)
		rescues->count++;
	rescues->rests[place] = *rest;
	rescues->tids[place] = tid; // last: this process may be killed at any time
}

size_t rescues_each(void (*function)(int tid, struct syscall_rest *rest))
{
	size_t n_left = 0;

	for (size_t i = 0; i < count_places(); i++) {
		if (rescues->tids[i])
			function(rescues->tids[i], &rescues->rests[i]);
		n_left += rescues->tids[i] != 0;
	}
	return n_left;
}

bool rescues_any(void)
{
	for (size_t i = 0; i < count_places(); i++)
		if (rescues->tids[i])
			return true;
	return false;
}
