// SPDX-License-Identifier: MIT
#include "dump_shared.h"

#include <linux/futex.h>
#include <stdlib.h>

#include "dump_locks.h"
#include "lock_look.h"
#include "maps.h"
#include "memory.h"
#include "proc.h"
#include "syscall_numbers.h"

enum {
	OWNER_WORD = 2, // of glibc's mutex, from the futex on; the word itself has it in some
	TID_MASK = FUTEX_TID_MASK,
};

// A place in a file, or in memory that is mapped like one.
struct place {
	uint64_t device, inode, offset;
};

static bool is_same(const struct place *a, const struct place *b)
{
	return a->inode != 0 && a->device == b->device && a->inode == b->inode &&
	       a->offset == b->offset;
}

// False: it is nobody else's memory.
static bool find_place(const struct maps *maps, uint64_t address, struct place *ret)
{
	const struct mapping *mapping = maps_find(maps, address);

	if (!mapping || mapping->inode == 0)
		return false;
	*ret = (struct place){mapping->device, mapping->inode,
	                      address - mapping->start + mapping->file_offset};
	return true;
}

static bool has_place(const struct maps *maps, const struct place *place)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->items[i];
		if (mapping->shared && mapping->device == place->device &&
		    mapping->inode == place->inode && place->offset >= mapping->file_offset &&
		    place->offset - mapping->file_offset < mapping->end - mapping->start)
			return true;
	}
	return false;
}

bool dump_shared_has(const struct lock_look *look, int pid)
{
	struct maps own = {0}, other = {0};
	struct place place;

	maps_read(&own, look->pid, look->tid);
	const struct mapping *mapping = maps_find(&own, look->call.args[0]);
	bool has = mapping && mapping->shared && find_place(&own, look->call.args[0], &place);
	if (has)
		maps_read(&other, pid, pid);
	has = has && has_place(&other, &place);
	maps_deinit(&own);
	maps_deinit(&other);
	return has;
}

static int process_of(uint32_t tid)
{
	struct proc_status status;

	return tid != 0 && tid <= TID_MASK && proc_read_status((int)tid, &status) ? status.tgid : 0;
}

int dump_shared_holder(const struct lock_look *look)
{
	const uint32_t words[] = {lock_look_word(look, OWNER_WORD),
	                          lock_look_word(look, 0) & TID_MASK};

	if (look->call.nr != SYS_futex || look->call.args[1] & FUTEX_PRIVATE_FLAG)
		return 0;
	for (size_t i = 0; i < array_size(words); i++) {
		const int pid = process_of(words[i]);
		if (pid != 0 && pid != look->pid && dump_shared_has(look, pid))
			return pid;
	}
	return 0;
}

// Where each of the waiters waits, by instruction; they are sorted by process.
static struct place *find_places(const struct dump_waiter *waiters, size_t n)
{
	struct place *places = memory_alloc_zeroed(n + 1, sizeof(*places));
	struct maps maps = {0};
	int pid = 0;

	for (size_t i = 0; i < n; i++) {
		const struct lock_look *look = &waiters[i].look;
		if (!waiters[i].has_look || look->call.nr != SYS_futex)
			continue;
		if (pid != look->pid)
			maps_read(&maps, look->pid, look->tid);
		pid = look->pid;
		find_place(&maps, look->call.pc, &places[i]);
	}
	maps_deinit(&maps);
	return places;
}

static bool is_mutex(const struct dump_waiter *waiters, const struct place *places, size_t n,
                     const struct place *place)
{
	for (size_t i = 0; i < n; i++)
		if (waiters[i].hint == LOCK_HINT_MUTEX && waiters[i].thread >= 0 &&
		    is_same(&places[i], place))
			return true;
	return false;
}

void dump_shared_hints(struct dump_waiter *waiters, size_t n)
{
	bool has_other = false;

	for (size_t i = 0; i < n; i++)
		has_other |= waiters[i].thread < 0 && waiters[i].look.call.nr == SYS_futex;
	if (!has_other)
		return;
	_cleanup_free_ struct place *places = find_places(waiters, n);
	for (size_t i = 0; i < n; i++)
		if (waiters[i].thread < 0 && is_mutex(waiters, places, n, &places[i]))
			waiters[i].hint = LOCK_HINT_MUTEX;
}
