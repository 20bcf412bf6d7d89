// SPDX-License-Identifier: MIT
// Machine code of the target's making, followed to its return.
#include "fuzz.h"
#include "arch.h"
#include "beam_code.h"
#include "hotspot_code.h"
#include "language.h"
#include "rule.h"
#include "x86_code.h"
#include "x86_frame.h"

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

// Two functions, one after the other.
static bool find_function(void *context, uint64_t address, struct arch_function *ret)
{
	const struct input *input = context;
	const uint64_t middle = START + input->left / 2, end = START + input->left;

	if (address < START || address >= end)
		return false;
	*ret = address < middle ? (struct arch_function){START, middle, true}
	                        : (struct arch_function){middle, end, input->left % 2};
	return true;
}

static bool find_sp(void *context, uint64_t address, int64_t *ret)
{
	(void)context;
	*ret = -16;
	return address % 8 == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	const bool is_erlang = size > 0 && data[0] & 1;
	const struct arch_code code = {
	    .read = read_code,
	    .is_together = is_together,
	    .find_start = find_start,
	    .rule_at_jump = languages_rule_at_jump,
	    .is_tail_call = is_erlang ? beam_code_is_tail_call : NULL,
	    .is_last_call = is_erlang ? beam_code_is_header : NULL,
	    .changes_stacks = is_erlang,
	    .context = &input,
	};
	struct rule rule;

	if (x86_code_rule(&code, START + (size % 2 ? size / 2 : 0), size % 3 == 0, &rule)) {
		expect((rule.kind == RULE_CODE || rule.kind == RULE_LANGUAGE) &&
		       rule.n_registers <= ARCH_MAX_REGISTERS);
		rule_deinit(&rule);
	}
	x86_code_is_after_call(data, size);
	hotspot_code_find_start(&code, START + size);
	x86_code_left_alone(&code, START + 5);
	// Where a way leads, it may lead.
	expect(!x86_code_leads_to(&code, START, START + size / 2) ||
	       x86_code_may_lead_to(&code, START, START + size / 2, size % 2));
	x86_code_may_return(&code, START);
	ARCH_NATIVE->jumps_back(data, size);
	expect(!ARCH_NATIVE->is_padding(data, size) || size == 0 || data[0] != 0xc3);

	const struct arch_functions functions = {read_code, find_function, find_sp, &input};
	struct arch_frame frame = {0};
	x86_frame_find(&functions, START + size / 3, size % 3 == 0, &frame);
	expect(frame.sp_to_cfa <= 1 << 30 && frame.sp_to_cfa >= -(1 << 30));
	return 0;
}
