// SPDX-License-Identifier: MIT
// DWARF expressions, as they come out of CFI.
#include "arch.h"
#include "expression.h"
#include "fuzz.h"
#include "memory.h"

enum { MAX_OPS = 256 };

// Memory: every other page is not at hand.
static bool read_word(const void *memory, uint64_t address, unsigned int size, uint64_t *ret)
{
	(void)memory;
	expect(size == 1 || size == 2 || size == 4 || size == 8);
	if (address & 4096)
		return false;
	*ret = address * 0x9e3779b97f4a7c15u >> (64 - 8 * size);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct registers registers = {.known = input_u32(&input)};
	const uint64_t initial = input_u64(&input);
	uint64_t result;

	for (size_t i = 0; i < ARCH_MAX_REGISTERS; i++)
		registers.value[i] = initial * (i + 1);
	_cleanup_free_ struct expression *expression = memory_alloc_zeroed(
	    1, sizeof(struct expression) + MAX_OPS * sizeof(struct expression_op));
	while (input.left && expression->count < MAX_OPS) {
		struct expression_op *op = &expression->ops[expression->count++];
		op->atom = input_u8(&input);
		const uint8_t wide = input_u8(&input);
		op->number = wide & 1 ? (int64_t)input_u64(&input) : (int8_t)input_u8(&input);
		op->number2 = wide & 2 ? (int64_t)input_u64(&input) : (int8_t)input_u8(&input);
		op->target = input_u8(&input); // at most the end, as cfi.c has it
	}
	for (size_t i = 0; i < expression->count; i++)
		if (expression->ops[i].target > expression->count)
			expression->ops[i].target = expression->count;
	expression_evaluate(expression, &registers, size & 1 ? &initial : NULL, read_word, NULL,
	                    &result);
	return 0;
}
