// SPDX-License-Identifier: MIT
#include "dump_inferred.h"

#include <string.h>

#include "dump.h"
#include "dump_locks.h"
#include "memory.h"
#include "resident.h"

enum {
	STACK_BYTES = 32 << 10, // of each thread, from its innermost frame on
	MAX_LOCKS = 64,
	MAX_STACKS = 4096,
};

struct nameless_lock {
	int pid;
	uint64_t address;
	size_t n_threads; // that have the address on their stack, and do not wait for it
	int tid;          // the last one of them
};

struct inference {
	struct dump_locks *locks; // borrowed
	bool *waits_for_lock;     // for each of the profile's threads
	struct nameless_lock items[MAX_LOCKS];
	size_t n_items;
};

static bool is_nameless(const struct inference *inference, size_t i)
{
	const struct dump_waiter *waiter = &inference->locks->waiters[i];
	const enum lock_what what = waiter->claim.what;

	return waiter->is_same && waiter->thread >= 0 && waiter->claim.address != 0 &&
	       inference->locks->nodes[i].n_holders == 0 &&
	       (what == LOCK_WHAT_GUARD ||
	        (what == LOCK_WHAT_LOCK && inference->waits_for_lock[waiter->thread]));
}

static struct nameless_lock *find(struct inference *inference, const struct dump_waiter *waiter)
{
	for (size_t i = 0; i < inference->n_items; i++)
		if (inference->items[i].pid == waiter->look.pid &&
		    inference->items[i].address == waiter->claim.address)
			return &inference->items[i];
	return NULL;
}

static void collect(struct inference *inference)
{
	for (size_t i = 0; i < inference->locks->count; i++) {
		const struct dump_waiter *waiter = &inference->locks->waiters[i];
		if (!is_nameless(inference, i) || find(inference, waiter) ||
		    inference->n_items == MAX_LOCKS)
			continue;
		inference->items[inference->n_items++] = (struct nameless_lock){
		    .pid = waiter->look.pid, .address = waiter->claim.address};
	}
}

static bool has_word(const uint64_t *words, size_t n, uint64_t word)
{
	for (size_t i = 0; i < n; i++)
		if (words[i] == word)
			return true;
	return false;
}

static void search_stack(struct inference *inference, const struct dump_waiter *waiter,
                         uint64_t *words)
{
	struct resident_gaps gaps;

	memset(words, 0, STACK_BYTES);
	const uint64_t sp = waiter->look.call.sp & ~(uint64_t)(sizeof(*words) - 1);
	const size_t size = resident_copy(NULL, waiter->look.tid, sp, words, STACK_BYTES, &gaps);
	for (size_t i = 0; i < inference->n_items; i++) {
		struct nameless_lock *lock = &inference->items[i];
		if (lock->pid != waiter->look.pid || lock->address == waiter->claim.address ||
		    !has_word(words, size / sizeof(*words), lock->address))
			continue;
		lock->n_threads++;
		lock->tid = waiter->look.tid;
	}
}

void dump_infer_holders(struct dump_locks *locks, const struct dump *dump)
{
	_cleanup_free_ bool *waits_for_lock =
	    memory_alloc_zeroed(dump->profile->n_threads + 1, sizeof(*waits_for_lock));
	_cleanup_free_ struct inference *inference = memory_alloc_zeroed(1, sizeof(*inference));

	for (size_t i = 0; i < dump->n_threads; i++)
		waits_for_lock[dump->threads[i].thread] = dump->threads[i].kind == WAIT_KIND_LOCK;
	inference->locks = locks;
	inference->waits_for_lock = waits_for_lock;
	collect(inference);
	if (inference->n_items == 0)
		return;
	_cleanup_free_ uint64_t *words = memory_alloc(STACK_BYTES);
	for (size_t i = 0; i < locks->count && i < MAX_STACKS; i++)
		if (locks->waiters[i].has_look && locks->waiters[i].look.call.sp != 0)
			search_stack(inference, &locks->waiters[i], words);
	for (size_t i = 0; i < locks->count; i++) {
		const struct nameless_lock *lock =
		    is_nameless(inference, i) ? find(inference, &locks->waiters[i]) : NULL;
		if (!lock || lock->n_threads != 1)
			continue;
		locks->nodes[i].holders[0] = (struct deadlock_holder){lock->pid, lock->tid};
		locks->nodes[i].n_holders = 1;
	}
}
