// SPDX-License-Identifier: MIT
#include "goroutines.h"

#include <stdlib.h>
#include <string.h>

#include "arch.h"
#include "go_program.h"
#include "memory.h"
#include "resident.h"

enum {
	MAX_GOROUTINES = 1 << 20, // that are read
	MAX_GAP = 4096,           // between structures that are read at once
	MAX_RANGE = 128 << 10,    // of those
	MAX_COPY = 1 << 20,       // of a stack
	MAX_OWN = 128 << 10,      // of a thread's own
	STATUS_MASK = 0xfff,
};

void goroutine_list_deinit(struct goroutine_list *list)
{
	free(list->items);
	free(list->listed);
	free(list->sorted);
	free(list->sorted_from);
	free(list->bytes);
	free(list->stack);
	free(list->own_stack);
	*list = (struct goroutine_list){0};
}

static void parse(const struct go_program *program, const uint8_t *bytes, uint64_t address,
                  struct goroutine *ret)
{
	const struct go_offsets *offsets = &program->offsets;
	const uint64_t syscall_sp = go_word(bytes, offsets->syscall_sp);

	*ret = (struct goroutine){
	    .address = address,
	    .goid = go_word(bytes, offsets->goid),
	    .low = go_word(bytes, offsets->low),
	    .high = go_word(bytes, offsets->high),
	    .sp = go_word(bytes, offsets->sp),
	    .pc = go_word(bytes, offsets->pc),
	    .bp = go_word(bytes, offsets->bp),
	    .m = go_word(bytes, offsets->m),
	    .creator_pc = go_word(bytes, offsets->creator_pc),
	    .start_pc = go_word(bytes, offsets->start_pc),
	    .waiting = go_word(bytes, offsets->waiting),
	    .status = (uint32_t)go_word(bytes, offsets->status) & STATUS_MASK,
	    .reason = bytes[offsets->wait_reason],
	    .has_seq = offsets->tracking_seq != GO_NO_FIELD,
	    .locked_m = go_word(bytes, offsets->locked_m),
	    .labels = go_word(bytes, offsets->labels),
	};
	if (ret->has_seq)
		ret->seq = bytes[offsets->tracking_seq];
	if (ret->status == GOROUTINE_WAITING)
		ret->since_ns = (int64_t)go_word(bytes, offsets->wait_since);
	if (syscall_sp) {
		ret->sp = syscall_sp;
		ret->pc = go_word(bytes, offsets->syscall_pc);
		ret->bp = go_word(bytes, offsets->syscall_bp);
	}
}

bool goroutine_read(const struct go_program *program, const struct go_memory *memory,
                    uint64_t address, struct goroutine *ret)
{
	uint8_t bytes[UINT8_MAX * sizeof(uint64_t)];

	if (program->g_bytes > sizeof(bytes) || address % sizeof(uint64_t) != 0 ||
	    !go_memory_read(memory, address, bytes, program->g_bytes) ||
	    !go_program_is_g(program, bytes, address))
		return false;
	parse(program, bytes, address, ret);
	return true;
}

bool goroutine_thread(const struct go_program *program, const struct go_memory *memory, uint64_t m,
                      uint64_t *ret_tid, uint64_t *ret_g)
{
	return m % sizeof(uint64_t) == 0 &&
	       go_memory_read(memory, m + program->offsets.thread_id, ret_tid, sizeof(*ret_tid)) &&
	       go_memory_read(memory, m + program->offsets.current, ret_g, sizeof(*ret_g));
}

static int compare(const void *a_pointer, const void *b_pointer)
{
	const uint64_t a = *(const uint64_t *)a_pointer, b = *(const uint64_t *)b_pointer;

	return (a > b) - (a < b);
}

// Sorts them, and strikes those off that are there twice.
static void sort(struct goroutine_list *list, size_t n)
{
	size_t kept = 0;

	// It only ever grows, and seldom.
	if (n == list->n_sorted_from && n > 0 &&
	    memcmp(list->listed, list->sorted_from, n * sizeof(*list->listed)) == 0)
		return;
	list->sorted_from = memory_grow(list->sorted_from, &list->sorted_from_capacity, n + 1,
	                                sizeof(*list->sorted_from));
	memcpy(list->sorted_from, list->listed, n * sizeof(*list->listed));
	list->n_sorted_from = n;
	list->sorted =
	    memory_grow(list->sorted, &list->sorted_capacity, n + 1, sizeof(*list->sorted));
	memcpy(list->sorted, list->listed, n * sizeof(*list->sorted));
	if (n > 0)
		qsort(list->sorted, n, sizeof(*list->sorted), compare);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || list->sorted[kept - 1] != list->sorted[i])
			list->sorted[kept++] = list->sorted[i];
	list->n_listed = kept;
}

// The length before the address: the runtime sets them the other way round.
static bool read_addresses(struct goroutine_list *list, const struct go_program *program,
                           const struct go_memory *memory)
{
	struct resident_gaps gaps;
	uint64_t length, pointer;

	if (!go_memory_read(memory, program->list_length, &length, sizeof(length)) ||
	    !go_memory_read(memory, program->list_pointer, &pointer, sizeof(pointer)))
		return false;
	size_t n = length < MAX_GOROUTINES ? length : MAX_GOROUTINES;
	list->listed =
	    memory_grow(list->listed, &list->listed_capacity, n + 1, sizeof(*list->listed));
	size_t bytes = resident_copy(memory->resident, memory->tid, pointer, list->listed,
	                             n * sizeof(*list->listed), &gaps);
	if (gaps.count > 0 && gaps.items[0].start < bytes)
		bytes = gaps.items[0].start;
	n = bytes / sizeof(*list->listed);
	list->n_left_out = length - n;
	sort(list, n);
	return n > 0;
}

// Where a gap lies over some of the bytes.
static bool is_missing(const struct resident_gaps *gaps, size_t at, size_t size)
{
	for (size_t i = 0; i < gaps->count; i++)
		if (at < gaps->items[i].end && at + size > gaps->items[i].start)
			return true;
	return false;
}

// The structures from `first` up to, but without, `end` of the sorted ones, which lie together.
static void read_range(struct goroutine_list *list, const struct go_program *program,
                       const struct go_memory *memory, size_t first, size_t end)
{
	const uint64_t start = list->sorted[first];
	const size_t size = list->sorted[end - 1] - start + program->g_bytes;
	struct resident_gaps gaps;
	const size_t copied =
	    resident_copy(memory->resident, memory->tid, start, list->bytes, size, &gaps);

	for (size_t i = first; i < end; i++) {
		const size_t at = list->sorted[i] - start;
		const uint8_t *bytes = list->bytes + at;
		struct goroutine goroutine;
		if (at + program->g_bytes > copied || is_missing(&gaps, at, program->g_bytes) ||
		    !go_program_is_g(program, bytes, list->sorted[i])) {
			list->n_unreadable++;
			continue;
		}
		parse(program, bytes, list->sorted[i], &goroutine);
		if (goroutine.status == GOROUTINE_IDLE || goroutine.status == GOROUTINE_DEAD ||
		    goroutine.status == GOROUTINE_DEAD_EXTRA || goroutine.goid == 0)
			continue;
		*array_push(list->items, list->count, list->capacity) = goroutine;
	}
}

bool goroutine_list_read(struct goroutine_list *list, const struct go_program *program,
                         const struct go_memory *memory)
{
	list->count = list->n_unreadable = list->n_left_out = 0;
	const bool could = read_addresses(list, program, memory);
	list->n_read = could ? 0 : list->n_listed;
	return could;
}

bool goroutine_list_next(struct goroutine_list *list, const struct go_program *program,
                         const struct go_memory *memory)
{
	const size_t first = list->n_read;
	size_t end = first + 1;

	if (first == list->n_listed)
		return false;
	if (!list->bytes)
		list->bytes = memory_alloc(MAX_RANGE + program->g_bytes);
	while (end < list->n_listed &&
	       list->sorted[end] - list->sorted[end - 1] <= program->g_bytes + MAX_GAP &&
	       list->sorted[end] - list->sorted[first] <= MAX_RANGE)
		end++;
	list->count = 0;
	list->n_read = end;
	read_range(list, program, memory, first, end);
	return true;
}

bool goroutine_is_in_c(const struct goroutine *goroutine)
{
	// The runtime makes it with four words above its SP (proc.go, oneNewExtraM), and no
	// function to begin with.
	enum { EMPTY_STACK = 4 * sizeof(uint64_t) };

	return goroutine->status == GOROUTINE_SYSCALL && goroutine->start_pc == 0 &&
	       goroutine->high - goroutine->sp <= EMPTY_STACK;
}

bool goroutine_is_as(const struct goroutine *goroutine, const struct goroutine *other)
{
	return goroutine->goid == other->goid && goroutine->status == other->status &&
	       goroutine->low == other->low && goroutine->high == other->high &&
	       goroutine->sp == other->sp && goroutine->pc == other->pc &&
	       goroutine->bp == other->bp && goroutine->m == other->m &&
	       goroutine->reason == other->reason && goroutine->seq == other->seq;
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
static void copy_own_stack(struct goroutine_list *list, const struct go_program *program,
                           const struct go_memory *memory, const struct goroutine *goroutine,
                           struct snapshot *ret)
{
	const uint64_t m = goroutine->locked_m;
	struct snapshot_region *region = &ret->regions[1];
	uint64_t g0, own_m, low, high, sp;

	if (!m || m % sizeof(uint64_t) != 0 || !go_memory_read(memory, m, &g0, sizeof(g0)) ||
	    !go_memory_read(memory, g0 + program->offsets.m, &own_m, sizeof(own_m)) ||
	    !go_memory_read(memory, g0 + program->offsets.low, &low, sizeof(low)) ||
	    !go_memory_read(memory, g0 + program->offsets.high, &high, sizeof(high)) ||
	    !go_memory_read(memory, g0 + program->offsets.sp, &sp, sizeof(sp)) || own_m != m ||
	    sp % sizeof(uint64_t) != 0 || low >= high)
		return;
	// Of a thread that C has made the runtime does not know the bounds.
	list->own_stack = memory_grow(list->own_stack, &list->own_stack_capacity, MAX_OWN, 1);
	*region = (struct snapshot_region){.start = sp, .bytes = list->own_stack};
	region->size = resident_copy(memory->resident, memory->tid, sp, list->own_stack, MAX_OWN,
	                             &region->gaps);
	if (region->size == 0)
		return;
	ret->n_regions = 2;
	ret->go.m = m;
	ret->go.own = (struct go_stack){.address = g0, .low = low, .high = high, .sp = sp};
}

enum goroutine_copy goroutine_copy(struct goroutine_list *list, const struct go_program *program,
                                   const struct go_memory *memory,
                                   const struct goroutine *goroutine, struct snapshot *ret)
{
	struct goroutine now;

	if (goroutine->sp < goroutine->low || goroutine->sp >= goroutine->high ||
	    goroutine->sp % sizeof(uint64_t) != 0 || goroutine->pc == 0)
		return GOROUTINE_UNREADABLE;
	const uint64_t depth = goroutine->high - goroutine->sp;
	const size_t size = depth < MAX_COPY ? depth : MAX_COPY;
	list->stack = memory_grow(list->stack, &list->stack_capacity, size, 1);
	*ret = (struct snapshot){
	    .registers = registers_of(goroutine),
	    .n_regions = 1,
	    .cut = size < depth,
	    .is_parked = true,
	    .go = {.goroutine = {.address = goroutine->address,
	                         .low = goroutine->low,
	                         .high = goroutine->high}},
	};
	struct snapshot_region *region = &ret->regions[0];
	*region = (struct snapshot_region){.start = goroutine->sp, .bytes = list->stack};
	region->size = resident_copy(memory->resident, memory->tid, goroutine->sp, list->stack,
	                             size, &region->gaps);
	copy_own_stack(list, program, memory, goroutine, ret);
	if (!goroutine_read(program, memory, goroutine->address, &now) ||
	    !goroutine_is_as(&now, goroutine))
		return GOROUTINE_MOVED;
	return region->size > 0 ? GOROUTINE_COPIED : GOROUTINE_UNREADABLE;
}
