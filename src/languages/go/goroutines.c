// SPDX-License-Identifier: MIT
#include "goroutines.h"

#include <stdlib.h>
#include <string.h>

#include "go_program.h"
#include "memory.h"
#include "resident.h"

enum {
	MAX_GOROUTINES = 1 << 20, // that are read
	MAX_GAP = 2048,           // between structures of a range
	MAX_RANGE = 16 << 10,
	MAX_RANGES = 32, // that are read at once
	STATUS_MASK = 0xfff,
};

void goroutine_list_deinit(struct goroutine_list *list)
{
	free(list->items);
	free(list->listed);
	free(list->sorted);
	free(list->sorted_from);
	free(list->bytes);
	*list = (struct goroutine_list){0};
}

// True if it is that of a thread of C's, which has called Go before and may do so again, but is in
// C now: it has no frame of its own, and the thread's time is the thread's.
static bool is_in_c(const struct task *goroutine)
{
	// The runtime makes it with four words above its SP (proc.go, oneNewExtraM), and no
	// function to begin with.
	enum { EMPTY_STACK = 4 * sizeof(uint64_t) };

	return goroutine->status == GOROUTINE_SYSCALL && goroutine->start_pc == 0 &&
	       goroutine->high - goroutine->sp <= EMPTY_STACK;
}

static enum task_state state_of(const struct task *goroutine)
{
	if (goroutine->status == GOROUTINE_DEAD)
		return TASK_DEAD;
	if (is_in_c(goroutine))
		return TASK_OUTSIDE;
	if (goroutine->runner)
		return goroutine_is_run(goroutine->status) ? TASK_RUN : TASK_CHANGES;
	switch (goroutine->status) {
	case GOROUTINE_WAITING:
	case GOROUTINE_LEAKED:
		return TASK_WAITING;
	case GOROUTINE_RUNNABLE:
	case GOROUTINE_PREEMPTED:
		return TASK_READY;
	default:
		return TASK_CHANGES;
	}
}

static void parse(const struct go_program *program, const uint8_t *bytes, uint64_t address,
                  struct task *ret)
{
	const struct go_offsets *offsets = &program->offsets;
	const uint64_t syscall_sp = go_word(bytes, offsets->syscall_sp);

	*ret = (struct task){
	    .address = address,
	    .id = go_word(bytes, offsets->goid),
	    .low = go_word(bytes, offsets->low),
	    .high = go_word(bytes, offsets->high),
	    .sp = go_word(bytes, offsets->sp),
	    .pc = go_word(bytes, offsets->pc),
	    .bp = go_word(bytes, offsets->bp),
	    .runner = go_word(bytes, offsets->m),
	    .creator_pc = go_word(bytes, offsets->creator_pc),
	    .start_pc = go_word(bytes, offsets->start_pc),
	    .waiting = go_word(bytes, offsets->waiting),
	    .status = (uint32_t)go_word(bytes, offsets->status) & STATUS_MASK,
	    .reason = bytes[offsets->wait_reason],
	    .has_seq = offsets->tracking_seq != GO_NO_FIELD,
	    .only_runner = go_word(bytes, offsets->locked_m),
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
	ret->state = state_of(ret);
}

bool goroutine_parse(const struct go_program *program, const uint8_t *bytes, uint64_t address,
                     struct task *ret)
{
	if (!go_program_is_g(program, bytes, address))
		return false;
	parse(program, bytes, address, ret);
	return true;
}

bool goroutine_read(const struct go_program *program, const struct go_memory *memory,
                    uint64_t address, struct task *ret)
{
	uint8_t bytes[UINT8_MAX * sizeof(uint64_t)];

	return program->g_bytes <= sizeof(bytes) && address % sizeof(uint64_t) == 0 &&
	       go_memory_read(memory, address, bytes, program->g_bytes) &&
	       goroutine_parse(program, bytes, address, ret);
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
	const size_t bytes = resident_copy(memory->resident, memory->tid, pointer, list->listed,
	                                   n * sizeof(*list->listed), &gaps);
	n = resident_first_gap(&gaps, bytes) / sizeof(*list->listed);
	list->n_left_out = length - n;
	sort(list, n);
	return n > 0;
}

static void add_one(struct goroutine_list *list, const struct go_program *program,
                    const struct go_memory *memory, uint64_t address, const uint8_t *bytes)
{
	struct task goroutine;

	if (!(bytes ? goroutine_parse(program, bytes, address, &goroutine)
	            : goroutine_read(program, memory, address, &goroutine)))
		return;
	if (goroutine.status == GOROUTINE_IDLE || goroutine.status == GOROUTINE_DEAD ||
	    goroutine.status == GOROUTINE_DEAD_EXTRA || goroutine.id == 0)
		return;
	*array_push(list->items, list->count, list->capacity) = goroutine;
}

// Returns the end of those sorted ones from the first on that are read as one range.
static size_t end_of_range(const struct goroutine_list *list, const struct go_program *program,
                           size_t first)
{
	const uint64_t *sorted = list->sorted;
	size_t end = first + 1;

	while (end < list->n_listed &&
	       sorted[end] - sorted[end - 1] <= program->g_bytes + MAX_GAP &&
	       sorted[end] - sorted[first] <= MAX_RANGE)
		end++;
	return end;
}

bool goroutine_list_read(struct goroutine_list *list, const struct go_program *program,
                         const struct go_memory *memory)
{
	list->count = list->n_left_out = 0;
	const bool could = read_addresses(list, program, memory);
	list->n_read = could ? 0 : list->n_listed;
	return could;
}

bool goroutine_list_next(struct goroutine_list *list, const struct go_program *program,
                         const struct go_memory *memory)
{
	const size_t max_bytes = MAX_RANGE + program->g_bytes;
	struct resident_block blocks[MAX_RANGES];
	size_t ends[MAX_RANGES], n = 0, i = list->n_read;

	if (i == list->n_listed)
		return false;
	if (!list->bytes)
		list->bytes = memory_alloc(MAX_RANGES * max_bytes);
	for (; n < MAX_RANGES && list->n_read < list->n_listed; n++) {
		const uint64_t start = list->sorted[list->n_read];
		ends[n] = list->n_read = end_of_range(list, program, list->n_read);
		blocks[n] = (struct resident_block){
		    .address = start,
		    .bytes = list->bytes + n * max_bytes,
		    .size = list->sorted[ends[n] - 1] - start + program->g_bytes,
		};
	}
	resident_read_blocks(memory->resident, memory->tid, blocks, n);
	list->count = 0;
	for (size_t block = 0; block < n; block++)
		for (; i < ends[block]; i++) {
			const uint64_t address = list->sorted[i];
			const uint8_t *bytes = blocks[block].bytes;
			add_one(list, program, memory, address,
			        blocks[block].is_read ? bytes + (address - blocks[block].address)
			                              : NULL);
		}
	return true;
}

bool goroutine_is_as(const struct task *goroutine, const struct task *other)
{
	return goroutine->id == other->id && goroutine->status == other->status &&
	       goroutine->low == other->low && goroutine->high == other->high &&
	       goroutine->sp == other->sp && goroutine->pc == other->pc &&
	       goroutine->bp == other->bp && goroutine->runner == other->runner &&
	       goroutine->reason == other->reason && goroutine->seq == other->seq &&
	       goroutine->labels == other->labels;
}

const char *goroutine_reason(const struct go_program *program, const struct task *goroutine)
{
	const char *reason =
	    goroutine->reason < GO_MAX_REASONS ? program->reasons[goroutine->reason] : "";

	return reason[0] ? reason : "waiting";
}
