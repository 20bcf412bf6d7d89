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
		free(copies->items[i].copy.labels);
	copies->count = copies->used = 0;
}

// Returns how much of its stack there is; 0: it is not where it says.
static uint64_t depth_of(const struct task *goroutine)
{
	return goroutine->sp < goroutine->low || goroutine->sp >= goroutine->high ||
	               goroutine->sp % sizeof(uint64_t) != 0 || goroutine->pc == 0
	           ? 0
	           : goroutine->high - goroutine->sp;
}

bool goroutine_copies_add(struct goroutine_copies *copies, const struct task *goroutine,
                          uint32_t id)
{
	const uint64_t depth = depth_of(goroutine);
	const size_t size = depth < MAX_COPY ? depth : MAX_COPY;
	const size_t own_size = size > 0 && goroutine->only_runner ? MAX_OWN : 0;

	if (copies->count == MAX_COPIES || copies->used + size + own_size > MAX_BYTES)
		return false;
	*array_push(copies->items, copies->count, copies->capacity) = (struct goroutine_copied){
	    .copy = {.id = id, .task = *goroutine},
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
static struct registers registers_of(const struct task *goroutine)
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
	const uint64_t m = item->copy.task.only_runner;
	struct snapshot *snapshot = &item->copy.snapshot;
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
	const struct task *goroutine = &item->copy.task;

	item->copy.snapshot = (struct snapshot){
	    .registers = registers_of(goroutine),
	    .n_regions = 1,
	    .cut = item->stack_bytes < depth_of(goroutine),
	    .is_parked = true,
	    .regions = {{.start = goroutine->sp, .bytes = making->copies->bytes + item->at}},
	};
	item->thread = (struct go_thread){.goroutine = {.address = goroutine->address,
	                                                .low = goroutine->low,
	                                                .high = goroutine->high}};
	go_stacks_set_thread(&item->copy.snapshot, &item->thread);
}

static void copy_stacks(const struct making *making)
{
	struct goroutine_copies *copies = making->copies;
	const struct go_memory *memory = making->memory;
	struct resident_block blocks[MAX_COPIES];

	for (size_t i = 0; i < copies->count; i++) {
		struct goroutine_copied *item = &copies->items[i];
		begin_snapshot(making, item);
		blocks[i] = (struct resident_block){.address = item->copy.task.sp,
		                                    .bytes = copies->bytes + item->at,
		                                    .size = item->stack_bytes};
	}
	read_blocks(making, blocks, copies->count);
	for (size_t i = 0; i < copies->count; i++) {
		struct goroutine_copied *item = &copies->items[i];
		struct snapshot_region *region = &item->copy.snapshot.regions[0];
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
		const uint64_t address = go_wait_guess(making->program, &item->copy.task,
		                                       &item->copy.snapshot, &copies->hints);
		blocks[i] = (struct resident_block){
		    .address = address, .bytes = bytes[i], .size = address ? GO_WAIT_BYTES : 0};
	}
	read_blocks(making, blocks, copies->count);
	for (size_t i = 0; i < copies->count; i++) {
		struct goroutine_copied *item = &copies->items[i];
		go_wait_find(making->program, making->memory, &item->copy.task,
		             &item->copy.snapshot, &blocks[i], &copies->hints, &item->wait);
	}
}

static void read_labels(const struct making *making)
{
	const struct task_copy *last = NULL;

	for (size_t i = 0; i < making->copies->count; i++) {
		struct task_copy *copy = &making->copies->items[i].copy;
		if (copy->task.labels == 0)
			continue;
		if (last && last->task.labels == copy->task.labels) {
			copy->labels = last->labels ? memory_strdup(last->labels) : NULL;
			copy->labels_lack = last->labels_lack;
		} else {
			copy->labels_lack = !go_labels_read(making->program, making->memory,
			                                    copy->task.labels, &copy->labels);
		}
		last = copy;
	}
}

static void judge(const struct making *making, struct goroutine_copied *item, const uint8_t *bytes)
{
	struct task_copy *copy = &item->copy;
	const uint64_t address = copy->task.address;
	const bool is_there =
	    bytes ? goroutine_parse(making->program, bytes, address, &copy->now)
	          : goroutine_read(making->program, making->memory, address, &copy->now);

	if (!is_there)
		copy->result = TASK_GONE;
	else if (copy->now.id != copy->task.id || copy->now.state == TASK_DEAD)
		copy->result = TASK_ENDED;
	else if (!goroutine_is_as(&copy->now, &copy->task))
		copy->result = TASK_MOVED;
	else
		copy->result = copy->snapshot.regions[0].size > 0 ? TASK_COPIED : TASK_UNREADABLE;
}

// Returns the end of those items from the first on whose structures can be read as one block.
static size_t end_of_block(const struct making *making, size_t first)
{
	const struct goroutine_copies *copies = making->copies;
	const uint64_t start = copies->items[first].copy.task.address;
	size_t end = first + 1;

	for (; end < copies->count; end++) {
		const uint64_t last = copies->items[end - 1].copy.task.address;
		const uint64_t next = copies->items[end].copy.task.address;
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
		const uint64_t start = copies->items[i].copy.task.address;
		ends[n] = end_of_block(making, i);
		blocks[n].address = start;
		blocks[n].size = copies->items[ends[n] - 1].copy.task.address - start + g_bytes;
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
		          ? bytes + (copies->items[i].copy.task.address - blocks[block].address)
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
