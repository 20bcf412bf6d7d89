// SPDX-License-Identifier: MIT
#include "go_guess.h"

#include <stdint.h>
#include <string.h>

#include "clock.h"
#include "go_labels.h"
#include "go_program.h"
#include "goroutines.h"
#include "memory.h"

enum {
	WORD = 8,
	MAX_CHECKED = 64, // goroutines
	MAX_LOOKS = 4,    // at one that changes meanwhile
	MAX_G_BYTES = 4096,
	MAX_TID = 1 << 22, // PID_MAX_LIMIT
	STATUS_MASK = 0xfff,
};

void go_guess_reduce(struct go_offsets *offsets)
{
	// Without it, each look at a goroutine reads its stack again.
	offsets->tracking_seq = GO_NO_FIELD;
	// Without these, what a goroutine waits for has no address.
	offsets->channel = offsets->element = offsets->next_waiting = GO_NO_FIELD;
	offsets->poll_fd = offsets->poll_reader = offsets->poll_writer = GO_NO_FIELD;
}

// One struct g that was read.
struct look {
	const struct go_program *program;
	const struct go_memory *memory;
	uint64_t address;
	const uint8_t *bytes;
	uint32_t status;
};

static uint64_t field(const struct look *look, uint16_t offset)
{
	return go_word(look->bytes, offset);
}

static bool points_at(const struct look *look, uint64_t at, uint64_t expected)
{
	uint64_t word;

	return at % WORD == 0 && go_memory_read(look->memory, at, &word, sizeof(word)) &&
	       word == expected;
}

static bool is_in_stack(const struct look *look, uint64_t address)
{
	const struct go_offsets *offsets = &look->program->offsets;

	return address % WORD == 0 && address >= field(look, offsets->low) &&
	       address <= field(look, offsets->high);
}

static bool is_code(const struct look *look, uint64_t address)
{
	return go_program_function(look->program, address, NULL) != NULL;
}

static bool is_place(const struct look *look, uint16_t sp, uint16_t pc)
{
	return is_in_stack(look, field(look, sp)) && is_code(look, field(look, pc));
}

// Where it goes on.
static bool fits_stack(const struct look *look)
{
	const struct go_offsets *offsets = &look->program->offsets;
	const bool is_in_call = field(look, offsets->syscall_sp) != 0;
	const uint64_t bp = field(look, offsets->bp);

	if (is_in_call && !is_place(look, offsets->syscall_sp, offsets->syscall_pc))
		return false;
	if (look->status == GOROUTINE_RUNNING || look->status == GOROUTINE_SYSCALL)
		return is_in_call == (look->status == GOROUTINE_SYSCALL);
	return is_place(look, offsets->sp, offsets->pc) && (bp == 0 || is_in_stack(look, bp));
}

// Where it began, and who created it.
static bool fits_start(const struct look *look)
{
	const struct go_offsets *offsets = &look->program->offsets;
	const uint64_t start = field(look, offsets->start_pc);
	const uint64_t creator = field(look, offsets->creator_pc);
	uint64_t entry;

	if (start && (!go_program_function(look->program, start, &entry) || entry != start))
		return false;
	return creator == 0 || is_code(look, creator);
}

// The thread that runs it, and the one that alone may.
static bool fits_threads(const struct look *look)
{
	const struct go_offsets *offsets = &look->program->offsets;
	const uint64_t m = field(look, offsets->m), locked_m = field(look, offsets->locked_m);
	const bool is_run = look->status == GOROUTINE_RUNNING || look->status == GOROUTINE_SYSCALL;
	uint64_t tid, g, g0;

	// One that waits may have a thread as well, while that works for the collector.
	if (is_run && m == 0)
		return false;
	if (m != 0 && (!goroutine_thread(look->program, look->memory, m, &tid, &g) ||
	               g != look->address || tid == 0 || tid > MAX_TID))
		return false;
	return locked_m == 0 ||
	       (locked_m % WORD == 0 && go_memory_read(look->memory, locked_m, &g0, sizeof(g0)) &&
	        points_at(look, g0 + offsets->m, locked_m));
}

// What it waits for, and since when.
static bool fits_wait(const struct look *look)
{
	const struct go_offsets *offsets = &look->program->offsets;
	const uint64_t waiting = field(look, offsets->waiting);
	const uint8_t reason = look->bytes[offsets->wait_reason];

	if (look->status != GOROUTINE_WAITING)
		return true;
	return reason < GO_MAX_REASONS && look->program->reasons[reason][0] != '\0' &&
	       (waiting == 0 || points_at(look, waiting, look->address)) &&
	       field(look, offsets->wait_since) <= (uint64_t)clock_now_ns();
}

static bool is_alive(const struct look *look)
{
	return look->status != GOROUTINE_IDLE && look->status != GOROUTINE_DEAD &&
	       look->status != GOROUTINE_DEAD_EXTRA;
}

// What is counted while they are checked.
struct found {
	size_t n_whole; // parked ones that tell where they began and who created them
	size_t n_labels_read, n_labels_unreadable;
};

static void count(const struct look *look, struct found *found)
{
	const struct go_offsets *offsets = &look->program->offsets;
	const uint64_t labels = field(look, offsets->labels);
	_cleanup_free_ char *text = NULL;

	found->n_whole += look->status == GOROUTINE_WAITING && field(look, offsets->start_pc) &&
	                  field(look, offsets->creator_pc);
	if (!labels)
		return;
	if (go_labels_read(look->program, look->memory, labels, &text))
		found->n_labels_read++;
	else
		found->n_labels_unreadable++;
}

// False if it does not fit, or cannot be read. It may change while it is read: look again.
static bool fits(struct look *look, uint8_t *bytes, struct found *found)
{
	const struct go_program *program = look->program;

	for (int i = 0; i < MAX_LOOKS; i++) {
		if (!go_memory_read(look->memory, look->address, bytes, program->g_bytes) ||
		    !go_program_is_g(program, bytes, look->address))
			continue;
		look->bytes = bytes;
		look->status = (uint32_t)field(look, program->offsets.status) & STATUS_MASK;
		if (!is_alive(look))
			return true;
		if (field(look, program->offsets.goid) == 0 || !fits_stack(look) ||
		    !fits_start(look) || !fits_threads(look) || !fits_wait(look))
			continue;
		count(look, found);
		return true;
	}
	return false;
}

bool go_guess_fits(const struct go_program *program, const struct go_memory *memory)
{
	uint64_t length, pointer, elements[MAX_CHECKED];
	uint8_t bytes[MAX_G_BYTES];
	struct found found = {0};

	if (program->g_bytes > sizeof(bytes) ||
	    !go_memory_read(memory, program->list_length, &length, sizeof(length)) ||
	    !go_memory_read(memory, program->list_pointer, &pointer, sizeof(pointer)))
		return false;
	const size_t n = length < MAX_CHECKED ? length : MAX_CHECKED;
	if (pointer % WORD != 0 || !go_memory_read(memory, pointer, elements, n * WORD))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct look look = {.program = program, .memory = memory, .address = elements[i]};
		if (look.address % WORD != 0 || !fits(&look, bytes, &found))
			return false;
	}
	return found.n_whole > 0 && found.n_labels_unreadable <= found.n_labels_read;
}
