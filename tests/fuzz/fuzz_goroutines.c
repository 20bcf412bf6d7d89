// SPDX-License-Identifier: MIT
// What a target says of its goroutines is read from its memory, which here is the fuzzer's own: the
// list, the structures and what they lead to are the input's.
#include <stdlib.h>
#include <unistd.h>

#include "fuzz.h"
#include "go_program.h"
#include "goroutine_copies.h"
#include "goroutines.h"
#include "memory.h"
#include "resident.h"

enum { N_STRUCTURES = 12, STRUCTURE_BYTES = 512, N_WORDS = 16 };

static struct {
	uint8_t bytes[N_STRUCTURES][STRUCTURE_BYTES];
} arena __attribute__((aligned(8)));
static uint64_t listed[N_STRUCTURES], length, pointer;

static uint64_t address_of(const void *object)
{
	return (uint64_t)(uintptr_t)object;
}

// A word that leads somewhere: into the arena, to its end, or nowhere.
static uint64_t draw_word(struct input *input)
{
	const uint8_t what = input_u8(input);

	if (what < 128)
		return address_of(&arena) + 8 * (uint64_t)(what * sizeof(arena) / (8 * 128));
	return what < 192 ? what : (uint64_t)what << (what % 56);
}

static void fill(struct input *input, const struct go_program *program)
{
	const struct go_offsets *offsets = &program->offsets;
	const uint16_t words[] = {offsets->low,        offsets->high,    offsets->m,
	                          offsets->sp,         offsets->bp,      offsets->goid,
	                          offsets->syscall_sp, offsets->waiting, offsets->locked_m,
	                          offsets->labels};

	for (size_t i = 0; i < N_STRUCTURES; i++) {
		uint8_t *bytes = arena.bytes[i];
		const uint64_t self = address_of(bytes);
		memset(bytes, input_u8(input) & 1 ? 0 : 0x11, STRUCTURE_BYTES);
		// What labels and waits lead to: headers, buckets, sudogs.
		for (size_t j = input_u8(input) % N_WORDS; j > 0; j--) {
			const uint64_t word = draw_word(input);
			memcpy(bytes + input_u8(input) % (STRUCTURE_BYTES / 8) * 8, &word,
			       sizeof(word));
		}
		for (size_t j = 0; j < array_size(words); j++) {
			const uint64_t word = draw_word(input);
			memcpy(bytes + words[j], &word, sizeof(word));
		}
		bytes[offsets->status] = input_u8(input) & 0xf;
		bytes[offsets->status + 1] = 0;
		bytes[offsets->wait_reason] = input_u8(input) & 7;
		memset(bytes + offsets->status + 2, 0, 2);
		memcpy(bytes + offsets->pc + 8, &self, sizeof(self));
		listed[i] = input_u8(input) & 3 ? self : draw_word(input);
	}
}

static char reasons[GO_MAX_REASONS][GO_REASON_BYTES] = {"chan receive", "select", "IO wait",
                                                        "sync.Mutex.Lock"};

static void look_at(struct goroutine_copies *copies, const struct go_program *program,
                    const struct go_memory *memory, const struct task *goroutine)
{
	uint64_t tid, g;

	expect(goroutine->id != 0);
	goroutine_thread(program, memory, goroutine->runner, &tid, &g);
	if (!goroutine_copies_add(copies, goroutine, 0)) {
		goroutine_copies_make(copies, program, memory);
		goroutine_copies_clear(copies);
		expect(goroutine_copies_add(copies, goroutine, 0));
	}
}

static void check(const struct goroutine_copies *copies)
{
	for (size_t i = 0; i < copies->count; i++) {
		const struct goroutine_copied *copied = &copies->items[i];
		expect(copied->copy.result != TASK_COPIED ||
		       (copied->copy.snapshot.n_regions >= 1 &&
		        copied->copy.snapshot.regions[0].size > 0));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct go_program program = {.list_length = address_of(&length),
	                             .list_pointer = address_of(&pointer),
	                             .reasons = reasons};
	struct resident resident;
	struct goroutine_list list = {0};
	struct goroutine_copies copies = {0};
	uint64_t last = 0;

	go_offsets_of_version(16 + input_u8(&input) % 11, &program.offsets);
	program.g_bytes = go_offsets_g_bytes(&program.offsets);
	program.minor = 16 + input_u8(&input) % 11;
	expect(program.g_bytes <= STRUCTURE_BYTES);
	fill(&input, &program);
	length = input_u8(&input) & 1 ? N_STRUCTURES : draw_word(&input);
	pointer = input_u8(&input) & 3 ? address_of(listed) : draw_word(&input);
	resident_init(&resident, getpid());
	const struct go_memory memory = {getpid(), &resident};
	goroutine_list_read(&list, &program, &memory);
	while (goroutine_list_next(&list, &program, &memory))
		for (size_t i = 0; i < list.count; i++) {
			expect(list.items[i].address > last);
			last = list.items[i].address;
			look_at(&copies, &program, &memory, &list.items[i]);
		}
	goroutine_copies_make(&copies, &program, &memory);
	check(&copies);
	goroutine_copies_deinit(&copies);
	goroutine_list_deinit(&list);
	resident_deinit(&resident);
	return 0;
}
