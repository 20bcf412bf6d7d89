// SPDX-License-Identifier: MIT
#include "seized.h"

#include "memory.h"
#include "rescues.h"

// Volatile: compilers take it that ptrace(2) calls nothing of ours (GCC, attribute leaf), and would
// keep an older n_seized over a handler's run.
static struct seized *seized;
static volatile size_t n_seized;
static size_t seized_capacity;

void seized_reserve(void)
{
	seized = memory_grow(seized, &seized_capacity, n_seized + 1, sizeof(*seized));
}

struct seized *seized_add(int tid, int tgid)
{
	struct seized *entry = &seized[n_seized];

	*entry = (struct seized){.tid = tid, .tgid = tgid};
	n_seized++;
	return entry;
}

void seized_forget(int tid)
{
	struct seized *entry = seized_find(tid);

	if (!entry)
		return;
	if (entry->call != CALL_NONE)
		rescues_drop(tid); // the kernel may give its number to another thread
	n_seized--;
	*entry = seized[n_seized];
}

struct seized *seized_find(int tid)
{
	for (size_t i = 0; i < n_seized; i++)
		if (seized[i].tid == tid)
			return &seized[i];
	return NULL;
}

size_t seized_count(void)
{
	return n_seized;
}

struct seized *seized_at(size_t i)
{
	return &seized[i];
}
