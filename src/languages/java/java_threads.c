// SPDX-License-Identifier: MIT
// An ObjectMonitor names its owner (objectMonitor.hpp) by the address of its JavaThread, by that of
// a lock record on its stack (up to JDK 21), or by a number (from 24 on). A thread that has locked
// an object without a monitor, as nobody waited, keeps the object in a list of its own; the first
// one that waits makes a monitor whose owner has no name then.
#include "java_threads.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "memory.h"
#include "own_tids.h"

enum {
	MAX_THREADS = 1 << 14,
	COST_FACTOR = 1000, // after reading the list, wait this many times as long as it took
	NAMELESS_OWNER = 1,
	MAX_LOCKS = 8, // in a thread's own list (LockStack::CAPACITY)
};

void java_threads_deinit(struct java_threads *threads)
{
	free(threads->items);
	*threads = (struct java_threads){0};
}

// Reads the addresses of all JavaThreads. The caller frees them.
static uint64_t *read_array(const struct java_layout *layout, const struct java_memory *memory,
                            size_t *ret_n)
{
	const uint64_t list = java_read_word(memory, layout->thread_list);
	const uint64_t at = java_read_word(memory, list + (uint64_t)layout->list_items);
	uint32_t n = 0;

	*ret_n = 0;
	if (list == 0 || !java_read(memory, list + (uint64_t)layout->list_length, &n, sizeof(n)) ||
	    n == 0 || n > MAX_THREADS)
		return NULL;
	_cleanup_free_ uint64_t *addresses = memory_alloc(n * sizeof(*addresses));
	if (!java_read(memory, at, addresses, n * sizeof(*addresses)))
		return NULL;
	*ret_n = n;
	return take_pointer(addresses);
}

static uint64_t *read_chain(const struct java_layout *layout, const struct java_memory *memory,
                            size_t *ret_n)
{
	uint64_t *addresses = NULL;
	size_t n = 0, capacity = 0;

	for (uint64_t at = java_read_word(memory, layout->first_thread); at && n < MAX_THREADS;
	     at = java_read_word(memory, at + (uint64_t)layout->next_thread))
		*array_push(addresses, n, capacity) = at;
	*ret_n = n;
	return addresses;
}

// Returns the number for itself of the thread with that OSThread; 0: it cannot be read.
static int read_os_tid(const struct java_layout *layout, const struct java_memory *memory,
                       uint64_t os)
{
	int tid;

	return os && java_read(memory, os + (uint64_t)layout->os_thread_id, &tid, sizeof(tid)) &&
	               tid > 0
	           ? tid
	           : 0;
}

static int read_own_tid(const struct java_layout *layout, const struct java_memory *memory,
                        uint64_t address)
{
	return read_os_tid(layout, memory,
	                   java_read_word(memory, address + (uint64_t)layout->os_thread));
}

// What is read of a thread for the list.
struct listed {
	uint64_t address; // of its JavaThread
	uint64_t os;      // of its OSThread
	uint64_t stack_base, stack_size, owner_id;
	int own_tid;
};

// Reads what is listed of all threads, with few calls: many threads take long otherwise.
static void read_listed(const struct java_layout *layout, const struct java_memory *memory,
                        struct listed *listed, size_t n)
{
	enum { PIECES = 4 };
	const size_t id_bytes = layout->owner_id >= 0 ? sizeof(listed->owner_id) : 0;
	_cleanup_free_ struct resident_block *blocks =
	    memory_alloc((n * PIECES + 1) * sizeof(*blocks));

	for (size_t i = 0; i < n; i++) {
		struct listed *of = &listed[i];
		const uint64_t at = of->address;
		const struct resident_block pieces[PIECES] = {
		    {at + (uint64_t)layout->os_thread, &of->os, sizeof(of->os), false},
		    {at + (uint64_t)layout->stack_base, &of->stack_base, sizeof(of->stack_base),
		     false},
		    {at + (uint64_t)layout->stack_size, &of->stack_size, sizeof(of->stack_size),
		     false},
		    {at + (uint64_t)layout->owner_id, &of->owner_id, id_bytes, false},
		};
		memcpy(&blocks[i * PIECES], pieces, sizeof(pieces));
	}
	resident_read_often(memory->resident, memory->tid, blocks, n * PIECES);
	for (size_t i = 0; i < n; i++)
		blocks[i] = (struct resident_block){
		    listed[i].os + (uint64_t)layout->os_thread_id, &listed[i].own_tid,
		    listed[i].os ? sizeof(listed[i].own_tid) : 0, false};
	resident_read_often(memory->resident, memory->tid, blocks, n);
}

static void add(struct java_threads *threads, const struct own_tids *tids,
                const struct listed *listed)
{
	const int tid = listed->own_tid > 0 ? own_tids_find(tids, listed->own_tid) : 0;
	const uint64_t high = listed->stack_base, size = listed->stack_size;

	if (tid == 0)
		return;
	*array_push(threads->items, threads->n, threads->capacity) = (struct java_thread){
	    .address = listed->address,
	    .stack_low = high - size < high ? high - size : high,
	    .stack_high = high,
	    .owner_id = listed->owner_id,
	    .own_tid = listed->own_tid,
	    .tid = tid,
	};
}

static int compare(const void *a_pointer, const void *b_pointer)
{
	const int a = ((const struct java_thread *)a_pointer)->tid;
	const int b = ((const struct java_thread *)b_pointer)->tid;

	return (a > b) - (a < b);
}

static void read_all(struct java_threads *threads, const struct java_layout *layout,
                     const struct java_memory *memory)
{
	struct own_tids tids;
	size_t n;
	_cleanup_free_ uint64_t *addresses =
	    layout->thread_list ? read_array(layout, memory, &n) : read_chain(layout, memory, &n);
	_cleanup_free_ struct listed *listed = memory_alloc_zeroed(n + 1, sizeof(*listed));

	for (size_t i = 0; i < n; i++)
		listed[i].address = addresses[i];
	read_listed(layout, memory, listed, n);
	own_tids_init(&tids, memory->resident->pid);
	threads->n = 0;
	for (size_t i = 0; i < n; i++)
		add(threads, &tids, &listed[i]);
	if (threads->n > 0)
		qsort(threads->items, threads->n, sizeof(*threads->items), compare);
	own_tids_deinit(&tids);
}

// False if it was read not long ago.
static bool refresh(struct java_threads *threads, const struct java_layout *layout,
                    const struct java_memory *memory)
{
	const int64_t start_ns = clock_now_ns();

	// It is no part of what the thread's next wait reads.
	const struct java_memory plain = {.resident = memory->resident, .tid = memory->tid};

	if (start_ns < threads->next_ns)
		return false;
	read_all(threads, layout, &plain);
	const int64_t end_ns = clock_now_ns();
	threads->next_ns = end_ns + COST_FACTOR * (end_ns - start_ns);
	return true;
}

static const struct java_thread *find(const struct java_threads *threads, int tid)
{
	const struct java_thread key = {.tid = tid};

	return threads->n ? bsearch(&key, threads->items, threads->n, sizeof(key), compare) : NULL;
}

static bool is_still(const struct java_layout *layout, const struct java_memory *memory,
                     const struct java_thread *thread)
{
	return read_own_tid(layout, memory, thread->address) == thread->own_tid;
}

// False if it cannot be read, or is another thread's by now.
static bool read_state(const struct java_layout *layout, const struct java_memory *memory,
                       const struct java_thread *thread, struct java_thread_state *ret)
{
	const uint64_t at = thread ? thread->address : 0;
	uint64_t os = 0;
	struct resident_block blocks[] = {
	    {at + (uint64_t)layout->pending_monitor, &ret->pending, 8, false},
	    {at + (uint64_t)layout->waiting_monitor, &ret->waiting, 8, false},
	    {at + (uint64_t)layout->thread_object, &ret->object, 8, false},
	    {at + (uint64_t)layout->os_thread, &os, 8, false},
	};

	if (!thread)
		return false;
	java_read_blocks(memory, blocks, array_size(blocks));
	return blocks[0].is_read && blocks[1].is_read && blocks[2].is_read && blocks[3].is_read &&
	       read_os_tid(layout, memory, os) == thread->own_tid;
}

bool java_threads_read(struct java_threads *threads, const struct java_layout *layout,
                       const struct java_memory *memory, int tid, struct java_thread_state *ret)
{
	return read_state(layout, memory, find(threads, tid), ret) ||
	       (refresh(threads, layout, memory) &&
	        read_state(layout, memory, find(threads, tid), ret));
}

static int tid_of(const struct java_layout *layout, const struct java_memory *memory,
                  const struct java_thread *thread)
{
	return thread && is_still(layout, memory, thread) ? thread->tid : 0;
}

int java_threads_tid(const struct java_threads *threads, const struct java_layout *layout,
                     const struct java_memory *memory, uint64_t address)
{
	for (size_t i = 0; i < threads->n; i++)
		if (threads->items[i].address == address)
			return tid_of(layout, memory, &threads->items[i]);
	return 0;
}

// By its JavaThread, or by a place on its stack.
static int find_by_address(const struct java_threads *threads, const struct java_layout *layout,
                           const struct java_memory *memory, uint64_t address)
{
	for (size_t i = 0; i < threads->n; i++)
		if (address >= threads->items[i].stack_low &&
		    address < threads->items[i].stack_high)
			return tid_of(layout, memory, &threads->items[i]);
	return java_threads_tid(threads, layout, memory, address);
}

static uint64_t read_owner_id(const struct java_layout *layout, const struct java_memory *memory,
                              const struct java_thread *thread)
{
	return java_read_word(memory, thread->address + (uint64_t)layout->owner_id);
}

// A thread that runs a virtual thread has that one's number meanwhile.
static int find_by_id(struct java_threads *threads, const struct java_layout *layout,
                      const struct java_memory *memory, uint64_t id)
{
	for (size_t i = 0; i < threads->n; i++)
		if (threads->items[i].owner_id == id &&
		    read_owner_id(layout, memory, &threads->items[i]) == id)
			return tid_of(layout, memory, &threads->items[i]);
	for (size_t i = 0; i < threads->n; i++) {
		threads->items[i].owner_id = read_owner_id(layout, memory, &threads->items[i]);
		if (threads->items[i].owner_id == id)
			return tid_of(layout, memory, &threads->items[i]);
	}
	return 0;
}

// True if the thread's own list of locked objects has the object.
static bool has_locked(const struct java_layout *layout, const struct java_memory *memory,
                       const struct java_thread *thread, uint64_t object)
{
	const uint64_t at = thread->address + (uint64_t)layout->lock_stack;
	const uint64_t first = (uint64_t)layout->lock_stack + (uint64_t)layout->lock_stack_first;
	uint64_t objects[MAX_LOCKS];
	uint32_t top; // from the thread's structure on

	if (!java_read(memory, at + (uint64_t)layout->lock_stack_top, &top, sizeof(top)) ||
	    top <= first || (top - first) / sizeof(*objects) > MAX_LOCKS ||
	    !java_read(memory, thread->address + first, objects, top - first))
		return false;
	for (size_t i = 0; i < (top - first) / sizeof(*objects); i++)
		if (objects[i] == object)
			return true;
	return false;
}

static int find_by_list(struct java_threads *threads, const struct java_layout *layout,
                        const struct java_memory *memory, uint64_t monitor)
{
	const uint64_t handle = java_read_word(memory, monitor + (uint64_t)layout->monitor_object);
	const uint64_t object = java_read_word(memory, handle);
	const struct java_thread *last = find(threads, threads->holder);

	if (object == 0 || layout->lock_stack < 0 || layout->lock_stack_top < 0 ||
	    layout->lock_stack_first < 0)
		return 0;
	if (last && has_locked(layout, memory, last, object))
		return tid_of(layout, memory, last);
	for (size_t i = 0; i < threads->n; i++)
		if (has_locked(layout, memory, &threads->items[i], object)) {
			threads->holder = threads->items[i].tid;
			return tid_of(layout, memory, &threads->items[i]);
		}
	return 0;
}

static int find_owner(struct java_threads *threads, const struct java_layout *layout,
                      const struct java_memory *memory, uint64_t monitor, uint64_t owner)
{
	if (owner == NAMELESS_OWNER)
		return find_by_list(threads, layout, memory, monitor);
	if (layout->owner_id >= 0)
		return find_by_id(threads, layout, memory, owner);
	return find_by_address(threads, layout, memory, owner);
}

int java_threads_owner(struct java_threads *threads, const struct java_layout *layout,
                       const struct java_memory *memory, uint64_t monitor)
{
	const uint64_t at = monitor + (uint64_t)layout->monitor_owner;
	const uint64_t owner = java_read_word(memory, at);

	if (owner == 0)
		return 0;
	int tid = find_owner(threads, layout, memory, monitor, owner);
	if (tid == 0 && refresh(threads, layout, memory))
		tid = find_owner(threads, layout, memory, monitor, owner);
	// It may have changed hands meanwhile.
	return java_read_word(memory, at) == owner ? tid : 0;
}
