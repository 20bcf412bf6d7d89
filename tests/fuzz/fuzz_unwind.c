// SPDX-License-Identifier: MIT
// Stacks of any bytes, over the real code and CFI of this program and its libraries.
//
// Words of the input whose upper half is CODE become addresses in code, those with STACK addresses
// in the stack; else a fuzzer would never hit one.
#include <unistd.h>

#include "address_space.h"
#include "clock.h"
#include "fuzz.h"
#include "hash.h"
#include "memory.h"
#include "module.h"
#include "profile.h"
#include "rule_cache.h"
#include "snapshot.h"
#include "unwind.h"

enum {
	CODE = 0x45444f43,
	STACK = 0x4b435453,
	STACK_START = 0x70000000,
	MAX_STACK_BYTES = 1 << 16,
	MAX_FRAMES = 300,
	MAX_RUNS = 20000, // of one world, whose tables grow
};

static struct world {
	struct modules modules;
	struct address_space space;
	struct profile profile;
	struct rule_cache rules;
	struct unwinder unwinder;
	int runs;
} * world;

static void end_world(void)
{
	if (!world)
		return;
	unwinder_deinit(&world->unwinder);
	rule_cache_deinit(&world->rules);
	profile_deinit(&world->profile);
	address_space_deinit(&world->space);
	modules_deinit(&world->modules);
	free(take_pointer(world));
}

static void begin_world(void)
{
	world = memory_alloc_zeroed(1, sizeof(*world));
	address_space_init(&world->space, &world->modules, getpid());
	address_space_update(&world->space, getpid(), clock_now_ns(), true);
	unwinder_init(&world->unwinder, &world->space, &world->profile, &world->rules, MAX_FRAMES);
}

static uint64_t code_address(uint32_t number)
{
	const struct maps *maps = &world->space.maps;
	const struct mapping *found = NULL;

	for (size_t i = 0, n = 0; i < maps->count; i++)
		if (maps->items[i].executable && maps->items[i].inode && n++ <= number >> 28)
			found = &maps->items[i];
	return found->start + (number & 0xfffffff) % (found->end - found->start);
}

static uint64_t translate(uint64_t word, size_t stack_bytes)
{
	const uint32_t low = (uint32_t)word;

	switch (word >> 32) {
	case CODE:
		return code_address(low);
	case STACK:
		return STACK_START + (stack_bytes ? low % stack_bytes : 0);
	default:
		return word;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct snapshot snapshot = {.n_regions = 1};
	struct unwound unwound;

	if (!world || ++world->runs > MAX_RUNS) {
		end_world();
		begin_world();
		atexit(end_world);
	}
	const size_t head = sizeof(uint32_t) + ARCH_MAX_REGISTERS * sizeof(uint64_t);
	size_t stack_bytes = size > head ? size - head : 0;
	if (stack_bytes > MAX_STACK_BYTES)
		stack_bytes = MAX_STACK_BYTES;
	snapshot.registers.known =
	    input_u32(&input) | 1u << ARCH_NATIVE->pc | 1u << ARCH_NATIVE->sp;
	for (size_t i = 0; i < ARCH_MAX_REGISTERS; i++)
		snapshot.registers.value[i] = translate(input_u64(&input), stack_bytes);
	_cleanup_free_ uint8_t *stack = memory_alloc(stack_bytes + sizeof(uint64_t));
	for (size_t at = 0; at < stack_bytes; at += sizeof(uint64_t)) {
		const uint64_t word = translate(input_u64(&input), stack_bytes);
		memcpy(stack + at, &word, sizeof(word));
	}
	snapshot.regions[0] =
	    (struct snapshot_region){.start = STACK_START, .size = stack_bytes, .bytes = stack};
	unwinder_unwind(&world->unwinder, &snapshot, &unwound);
	expect(unwound.n >= 1 && unwound.n <= MAX_FRAMES);
	return 0;
}
