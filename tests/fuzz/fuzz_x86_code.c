// Machine code of the target's making, followed to its return.
#include "fuzz.h"
#include "hotspot_code.h"
#include "rule.h"
#include "x86_code.h"

static const uint64_t START = 0x1000;

static size_t read_code(void *context, uint64_t address, void *buffer, size_t size)
{
	const struct input *input = context;
	const uint64_t at = address - START;

	if (at >= input->left)
		return 0;
	if (size > input->left - at)
		size = input->left - at;
	memcpy(buffer, input->data + at, size);
	return size;
}

static bool is_together(void *context, uint64_t a, uint64_t b)
{
	(void)context;
	return a / 512 == b / 512;
}

static uint64_t find_start(void *context, unsigned int n)
{
	return n < 2 && ((const struct input *)context)->left % 2 ? START + n : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	const struct arch_code code = {read_code, is_together, find_start, &input};
	struct rule rule;

	if (x86_code_rule(&code, START + (size % 2 ? size / 2 : 0), &rule)) {
		expect(rule.kind == RULE_CODE && rule.n_registers <= ARCH_MAX_REGISTERS);
		rule_deinit(&rule);
	}
	x86_code_is_after_call(data, size);
	hotspot_code_find_start(&code, START + size);
	x86_code_left_alone(&code, START + 5);
	return 0;
}
