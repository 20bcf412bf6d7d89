// SPDX-License-Identifier: MIT
#include "goroutine_copies.h"

#include <stdlib.h>
#include <string.h>

#include "arch.h"
#include "go_labels.h"
#include "go_program.h"
#include "go_stacks.h"
#include "memory.h"
#include "resident.h"

enum {
	MAX_COPIES = 32,          // that are made at once: some move meanwhile, the more the longer
	MAX_COPY = 1 << 20,       // of a stack
	MAX_OWN = 128 << 10,      // of a thread's own
	MAX_BYTES = 2 << 20,      // of all stacks
	MAX_GAP = 1024,           // between structures that are read as one block
	MAX_STRUCTURES = 64 << 10 // of such a block
};

void goroutine_copies_deinit(struct goroutine_copies *copies)
{
	goroutine_copies_clear(copies);
	free(copies->items);
	free(copies->bytes);
	free(copies->structures);
	*copies = (struct goroutine_copies){0};
}

void goroutine_copies_clear(struct goroutine_copies *copies)
{
	for (size_t i = 0; i < copies->count; i++)
		free(copies->items[i].labels);
	copies->count = copies->used = 0;
}

// Returns how much of its stack there is; 0: it is not where it says.
static uint64_t depth_of(const struct goroutine *goroutine)
{
	return goroutine->sp < goroutine->low || goroutine->sp >= goroutine->high ||
	               goroutine->sp % sizeof(uint64_t) != 0 || goroutine->pc == 0
	           ? 0
	           : goroutine->high - goroutine->sp;
}

bool goroutine_copies_add(struct goroutine_copies *copies, const struct goroutine *goroutine,
                          uint32_t id)
{
	const uint64_t depth = depth_of(goroutine);
	const size_t size = depth < MAX_COPY ? depth : MAX_COPY;
	const size_t own_size = size > 0 && goroutine->locked_m ? MAX_OWN : 0;

	if (copies->count == MAX_COPIES || copies->used + size + own_size > MAX_BYTES)
		return false;
	*array_push(copies->items, copies->count, copies->capacity) = (struct goroutine_copied){
	    .id = id,
	    .goroutine = *goroutine,
	    .stack_bytes = size,
	    .at = copies->used,
	    .own_at = copies->used + size,
	};
	copies->used += size + own_size;
	return true;
}

// What makes the copies.
struct making {
	struct goroutine_copies *copies;
	const struct go_program *program;
	const struct go_memory *memory;
};

static void read_blocks(const struct making *making, struct resident_block *blocks, size_t n)
{
	resident_read_blocks(making->memory->resident, making->memory->tid, blocks, n);
}

// Where it goes on. A return address is looked up in the call before it; the function that one
// begins with, which it has not begun yet, is not called.
static struct registers registers_of(const struct goroutine *goroutine)
{
	const bool has_begun = goroutine->pc != goroutine->start_pc;
	const struct arch *arch = ARCH_NATIVE;
	struct registers registers = {0};

	registers_set(&registers, arch->pc, goroutine->pc - has_begun);
	registers_set(&registers, arch->sp, goroutine->sp);
	registers_set(&registers, arch->fp, goroutine->bp);
	return registers;
}

// One that C has called keeps its thread, on whose own stack (that of m.g0) C's frames are, and
// which waits for it: what is above the place where Go's code was entered stands still, too.
static void copy_own_stack(const struct making *making, struct goroutine_copied *item)
{
	const struct go_memory *memory = making->memory;
	const struct go_offsets *offsets = &making->program->offsets;
	const uint64_t m = item->goroutine.locked_m;
	struct snapshot *snapshot = &item->snapshot;
	struct snapshot_region *region = &snapshot->regions[1];
	uint8_t *bytes = making->copies->bytes + item->own_at;
	uint64_t g0, own_m, low, high, sp;

	if (!m || m % sizeof(uint64_t) != 0 || !go_memory_read(memory, m, &g0, sizeof(g0)) ||
	    !go_memory_read(memory, g0 + offsets->m, &own_m, sizeof(own_m)) ||
	    !go_memory_read(memory, g0 + offsets->low, &low, sizeof(low)) ||
	    !go_memory_read(memory, g0 + offsets->high, &high, sizeof(high)) ||
	    !go_memory_read(memory, g0 + offsets->sp, &sp, sizeof(sp)) || own_m != m ||
	    sp % sizeof(uint64_t) != 0 || low >= high)
		return;
	// Of a thread that C has made the runtime does not know the bounds.
	*region = (struct snapshot_region){.start = sp, .bytes = bytes};
	region->size =
	    resident_copy(memory->resident, memory->tid, sp, bytes, MAX_OWN, &region->gaps);
	if (region->size == 0)
		return;
	snapshot->n_regions = 2;
	item->thread.m = m;
	item->thread.own = (struct go_stack){.address = g0, .low = low, .high = high, .sp = sp};
}

static void begin_snapshot(const struct making *making, struct goroutine_copied *item)
{
	const struct goroutine *goroutine = &item->goroutine;

	item->snapshot = (struct snapshot){
	    .registers = registers_of(goroutine),
	    .n_regions = 1,
	    .cut = item->stack_bytes < depth_of(goroutine),
	    .is_parked = true,
	    .regions = {{.start = goroutine->sp, .bytes = making->copies->bytes + item->at}},
	};
	item->thread = (struct go_thread){.goroutine = {.address = goroutine->address,
	                                                .low = goroutine->low,
	                                                .high = goroutine->high}};
	go_stacks_set_thread(&item->snapshot, &item->thread);
}

static void copy_stacks(const struct making *making)
{
	struct goroutine_copies *copies = making->copies;
	const struct go_memory *memory = making->memory;
	struct resident_block blocks[MAX_COPIES];

	for (size_t i = 0; i < copies->count; i++) {
		struct goroutine_copied *item = &copies->items[i];
		begin_snapshot(making, item);
		blocks[i] = (struct resident_block){.address = item->goroutine.sp,
		                                    .bytes = copies->bytes + item->at,
		                                    .size = item->stack_bytes};
	}
	read_blocks(making, blocks, copies->count);
	for (size_t i = 0; i < copies->count; i++) {
		struct goroutine_copied *item = &copies->items[i];
		struct snapshot_region *region = &item->snapshot.regions[0];
		region->size = item->stack_bytes;
		if (!blocks[i].is_read) // not all of it
			region->size =
			    resident_copy(memory->resident, memory->tid, blocks[i].address,
			                  blocks[i].bytes, blocks[i].size, &region->gaps);
		if (region->size > 0)
			copy_own_stack(making, item);
	}
}

// Finds what they wait for. Most are known by the one place that is read first for each.
static void find_waits(const struct making *making)
{
	struct goroutine_copies *copies = making->copies;
	struct resident_block blocks[MAX_COPIES];
	uint8_t bytes[MAX_COPIES][GO_WAIT_BYTES];

	for (size_t i = 0; i < copies->count; i++) {
		const struct goroutine_copied *item = &copies->items[i];
		const uint64_t address = go_wait_guess(making->program, &item->goroutine,
		                                       &item->snapshot, &copies->hints);
		blocks[i] = (struct resident_block){
		    .address = address, .bytes = bytes[i], .size = address ? GO_WAIT_BYTES : 0};
	}
	read_blocks(making, blocks, copies->count);
	for (size_t i = 0; i < copies->count; i++) {
		struct goroutine_copied *item = &copies->items[i];
		go_wait_find(making->program, making->memory, &item->goroutine, &item->snapshot,
		             &blocks[i], &copies->hints, &item->wait);
	}
}

static void read_labels(const struct making *making)
{
	const struct goroutine_copied *last = NULL;

	for (size_t i = 0; i < making->copies->count; i++) {
		struct goroutine_copied *item = &making->copies->items[i];
		if (item->goroutine.labels == 0)
			continue;
		if (last && last->goroutine.labels == item->goroutine.labels) {
			item->labels = last->labels ? memory_strdup(last->labels) : NULL;
			item->labels_lack = last->labels_lack;
		} else {
			item->labels_lack = !go_labels_read(making->program, making->memory,
			                                    item->goroutine.labels, &item->labels);
		}
		last = item;
	}
}

static void judge(const struct making *making, struct goroutine_copied *item, const uint8_t *bytes)
{
	const uint64_t address = item->goroutine.address;
	const bool is_there =
	    bytes ? goroutine_parse(making->program, bytes, address, &item->now)
	          : goroutine_read(making->program, making->memory, address, &item->now);

	if (!is_there)
		item->result = GOROUTINE_GONE;
	else if (item->now.goid != item->goroutine.goid || item->now.status == GOROUTINE_DEAD)
		item->result = GOROUTINE_ENDED;
	else if (!goroutine_is_as(&item->now, &item->goroutine))
		item->result = GOROUTINE_MOVED;
	else
		item->result =
		    item->snapshot.regions[0].size > 0 ? GOROUTINE_COPIED : GOROUTINE_UNREADABLE;
}

// Returns the end of those items from the first on whose structures can be read as one block.
static size_t end_of_block(const struct making *making, size_t first)
{
	const struct goroutine_copies *copies = making->copies;
	const uint64_t start = copies->items[first].goroutine.address;
	size_t end = first + 1;

	for (; end < copies->count; end++) {
		const uint64_t last = copies->items[end - 1].goroutine.address;
		const uint64_t next = copies->items[end].goroutine.address;
		if (next <= last || next - last > making->program->g_bytes + MAX_GAP ||
		    next - start > MAX_STRUCTURES)
			break;
	}
	return end;
}

// Reads their structures again, which tells whether the copies are right.
static void verify(const struct making *making)
{
	struct goroutine_copies *copies = making->copies;
	const size_t g_bytes = making->program->g_bytes;
	struct resident_block blocks[MAX_COPIES];
	size_t ends[MAX_COPIES] = {0}, n = 0, used = 0;

	for (size_t i = 0; i < copies->count; i = ends[n++]) {
		const uint64_t start = copies->items[i].goroutine.address;
		ends[n] = end_of_block(making, i);
		blocks[n].address = start;
		blocks[n].size = copies->items[ends[n] - 1].goroutine.address - start + g_bytes;
		used += blocks[n].size;
	}
	copies->structures =
	    memory_grow(copies->structures, &copies->structures_capacity, used + 1, 1);
	used = 0;
	for (size_t i = 0; i < n; i++) {
		blocks[i].bytes = copies->structures + used;
		used += blocks[i].size;
	}
	read_blocks(making, blocks, n);
	for (size_t i = 0, block = 0; i < copies->count; i++) {
		block += i == ends[block];
		const uint8_t *bytes = blocks[block].bytes;
		judge(making, &copies->items[i],
		      blocks[block].is_read
		          ? bytes + (copies->items[i].goroutine.address - blocks[block].address)
		          : NULL);
	}
}

void goroutine_copies_make(struct goroutine_copies *copies, const struct go_program *program,
                           const struct go_memory *memory)
{
	const struct making making = {copies, program, memory};

	copies->bytes = memory_grow(copies->bytes, &copies->bytes_capacity, copies->used + 1, 1);
	copy_stacks(&making);
	find_waits(&making);
	read_labels(&making);
	verify(&making);
}
