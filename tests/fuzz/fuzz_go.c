// SPDX-License-Identifier: MIT
// Threads of Go whose memory is made up, and walks over their stacks.
//
// Words of the input whose upper half is MEMORY become addresses in the memory that the input
// fills, else a fuzzer would never hit one.
#include <unistd.h>

#include "arch.h"
#include "fuzz.h"
#include "go_switch.h"
#include "go_thread.h"
#include "memory.h"
#include "snapshot.h"

enum { MEMORY = 0x594d454d, MEMORY_WORDS = 256, MAX_STEPS = 64, N_KINDS = GO_SAVED_SP + 1 };

static uint64_t translate(uint64_t word, const uint64_t *memory)
{
	return word >> 32 == MEMORY ? (uint64_t)(uintptr_t)memory + (word & (MEMORY_WORDS * 8 - 1))
	                            : word;
}

static void expect_right(const struct go_thread *thread)
{
	const struct go_stack *goroutine = &thread->goroutine;

	expect(thread->m != 0 && thread->own.address != 0);
	expect(thread->own.low < thread->own.high);
	expect(goroutine->address != thread->own.address);
	expect(goroutine->sp == 0 || go_stack_has(goroutine, goroutine->sp));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t memory[MEMORY_WORDS];
	struct input input = {data, size};
	struct snapshot snapshot = {.n_regions = 1};
	struct go_thread go = {0};
	struct go_walk walk = {.go = &go};

	const struct go_layout layout = {
	    .tls = (int32_t)input_u32(&input),
	    .curg = (uint16_t)input_u32(&input),
	    .tls_at = translate(input_u64(&input), memory),
	};
	const uint64_t tls = translate(input_u64(&input), memory);
	struct registers registers = {.known = input_u32(&input) | 1u << ARCH_NATIVE->sp};
	for (size_t i = 0; i < ARCH_MAX_REGISTERS; i++)
		registers.value[i] = translate(input_u64(&input), memory);
	const uint64_t steps = input_u64(&input);
	for (size_t i = 0; i < MEMORY_WORDS; i++)
		memory[i] = translate(input_u64(&input), memory);
	if (go_thread_read(getpid(), NULL, tls, &layout, &go)) {
		expect_right(&go);
		expect(go_thread_is_valid(getpid(), NULL, &go));
	}
	snapshot.regions[0] = (struct snapshot_region){
	    .start = (uint64_t)(uintptr_t)memory,
	    .size = sizeof(memory),
	    .bytes = (const uint8_t *)memory,
	};
	for (unsigned int i = 0; i < MAX_STEPS; i++) {
		const struct registers before = registers;
		const unsigned int step = (unsigned int)(steps >> i % 16 * 4) + i / 16;
		const enum go_move move = go_switch_walk(&snapshot, step % N_KINDS, step * 8 % 64,
		                                         step & 16, &walk, &registers);
		if (move == GO_UNKNOWN)
			expect(memcmp(&before, &registers, sizeof(before)) == 0);
	}
	return 0;
}
