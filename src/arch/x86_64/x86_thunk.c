// SPDX-License-Identifier: MIT
#include "x86_thunk.h"

#include <stddef.h>
#include <string.h>

#include "arch.h"
#include "rule.h"
#include "x86_instruction.h"

enum {
	CALL_BYTES = 5,
	LOOP_BYTES = 7,
	MAX_PADDING = 15, // clang aligns what follows the loop
	MAX_BYTES = CALL_BYTES + LOOP_BYTES + MAX_PADDING,
	LEA_BYTES = 5,
	MOV_BYTES = 4,
	RET = 0xc3,
};

enum thunk { NO_THUNK, RETURNS, JUMPS };

// Tells what the code after a retpoline's loop is.
static enum thunk read_end(const struct arch_code *code, uint64_t address)
{
	static const uint8_t lea_ret[] = {0x48, 0x8d, 0x64, 0x24, 0x08, RET};
	uint8_t bytes[sizeof(lea_ret)];
	const size_t n = code->read(code->context, address, bytes, sizeof(bytes));

	if (n == sizeof(bytes) && memcmp(bytes, lea_ret, n) == 0)
		return RETURNS;
	// mov with a REX prefix, and memory at SP
	const bool is_mov = n > MOV_BYTES && (bytes[0] & ~4) == 0x48 && bytes[1] == 0x89 &&
	                    (bytes[2] & ~0x38) == 0x04 && bytes[3] == 0x24;
	return is_mov && bytes[MOV_BYTES] == RET ? JUMPS : NO_THUNK;
}

// True if a retpoline's loop ends within `bytes`, which lie before `address`, and its call leads
// there.
static bool leads_to(const uint8_t *bytes, size_t size)
{
	static const uint8_t loop[] = {0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9};

	for (size_t at = 0; at + CALL_BYTES + LOOP_BYTES <= size; at++) {
		int32_t distance;
		memcpy(&distance, bytes + at + 1, sizeof(distance));
		if (bytes[at] == 0xe8 && memcmp(bytes + at + CALL_BYTES, loop, LOOP_BYTES) == 0)
			return distance == (int32_t)(size - at - CALL_BYTES);
	}
	return false;
}

// Tells what begins at the address, if a retpoline's loop lies before it.
static enum thunk find_end(const struct arch_code *code, uint64_t address)
{
	uint8_t bytes[MAX_BYTES];
	const enum thunk thunk = read_end(code, address);

	return thunk != NO_THUNK &&
	               code->read(code->context, address - MAX_BYTES, bytes, MAX_BYTES) ==
	                   MAX_BYTES &&
	               leads_to(bytes, MAX_BYTES)
	           ? thunk
	           : NO_THUNK;
}

static enum thunk find_by_call(const struct arch_code *code, uint64_t address,
                               const struct instruction *i)
{
	if (i->map != MAP_ONE || i->is_vector || i->opcode != 0xe8 || i->length != CALL_BYTES ||
	    i->immediate < LOOP_BYTES || i->immediate > LOOP_BYTES + MAX_PADDING)
		return NO_THUNK;
	return find_end(code, address + CALL_BYTES + i->immediate);
}

void x86_thunk_replace(const struct arch_code *code, uint64_t address, struct instruction *i)
{
	const enum thunk thunk = find_by_call(code, address, i);

	if (thunk == RETURNS)
		*i = (struct instruction){.length = CALL_BYTES, .opcode = RET};
	else if (thunk == JUMPS)
		*i = (struct instruction){.length = CALL_BYTES, .opcode = 0xff, .reg_field = 4};
}

// Returns how far above SP the return address lies at the address in a retpoline; -1: it is not in
// one.
static int64_t find_return(const struct arch_code *code, uint64_t address)
{
	uint8_t bytes[CALL_BYTES];
	struct instruction i;
	const size_t n = code->read(code->context, address, bytes, sizeof(bytes));

	if (n == 0 || (bytes[0] != 0xe8 && bytes[0] != RET && (bytes[0] & ~4) != 0x48))
		return -1; // as almost always
	if (x86_instruction_decode(bytes, n, &i) && find_by_call(code, address, &i) != NO_THUNK)
		return 0;
	if (find_end(code, address) != NO_THUNK)
		return 8;
	if (bytes[0] == RET && find_end(code, address - LEA_BYTES) == RETURNS)
		return 0;
	return bytes[0] == RET && find_end(code, address - MOV_BYTES) == JUMPS ? 8 : -1;
}

bool x86_thunk_rule(const struct arch_code *code, uint64_t address, struct rule *ret)
{
	const int64_t above = find_return(code, address);

	if (above < 0)
		return false;
	ARCH_NATIVE->popping_rule(above, ret);
	return true;
}
