// SPDX-License-Identifier: MIT
#include "hotspot_frame.h"

#include <string.h>

#include "x86_registers.h"

enum {
	PC = HOTSPOT_TOP_BYTES / 2, // its place among the bytes
	MAX_SUB_DISTANCE = 32, // from the instruction that makes the frame to where it is whole
	MAX_POLL_INSTRUCTIONS = 4,
	PUSH_RBP = 0x55,
	POP_RBP = 0x5d,
	RET = 0xc3,
	WORD = 8,
};

const uint8_t hotspot_frame_bytecode = R13, hotspot_frame_method = RBX;

const struct hotspot_saved hotspot_frame_saved[HOTSPOT_N_SAVED] = {
    {RBX, -7 * WORD}, {R12, -8 * WORD}, {R13, -9 * WORD}, {R14, -10 * WORD}, {R15, -11 * WORD},
};

// True if sub $N, %rsp begins there, with 8 or 32 bits.
static bool is_sub_sp(const uint8_t *code, size_t left)
{
	return (left >= 4 && memcmp(code, "\x48\x83\xec", 3) == 0) ||
	       (left >= 7 && memcmp(code, "\x48\x81\xec", 3) == 0);
}

// True if mov %rbp, N(%rsp) begins there.
static bool is_save_of_rbp(const uint8_t *code)
{
	return memcmp(code, "\x48\x89\x6c\x24", 4) == 0 || memcmp(code, "\x48\x89\xac\x24", 4) == 0;
}

static void find_in_prologue(const uint8_t *code, uint64_t before, uint32_t whole,
                             struct hotspot_top *ret)
{
	const uint8_t *pc = code + PC;
	const size_t n = before < MAX_SUB_DISTANCE ? (size_t)before : MAX_SUB_DISTANCE;

	for (size_t i = 4; i <= n; i++)
		if (is_sub_sp(pc - i, i)) {
			ret->to_return = whole;
			ret->has_saved_fp = !is_save_of_rbp(pc);
			return;
		}
	ret->has_saved_fp = before > 0 && pc[-1] == PUSH_RBP;
	ret->to_return = ret->has_saved_fp ? WORD : 0;
}

// Returns the length of an instruction by which a method looks, before it returns, whether it is to
// stop at a safepoint; 0: it is none.
static size_t poll_length(const uint8_t *code)
{
	const bool is_far = code[2] >= 0x80; // a displacement of 32 bits

	if (code[0] == 0x49 && code[1] == 0x3b && (code[2] & 0x3f) == 0x27) // cmp N(%r15), %rsp
		return is_far ? 7 : 4;
	if (code[0] == 0x0f && code[1] == 0x87) // ja
		return 6;
	if (code[0] == 0x4d && code[1] == 0x8b && (code[2] & 0x3f) == 0x17) // mov N(%r15), %r10
		return is_far ? 7 : 4;
	return code[0] == 0x41 && code[1] == 0x85 ? 3 : 0; // test %eax, (%r10)
}

// Does so where the frame has been taken away: from pop %rbp to ret.
static bool find_in_epilogue(const uint8_t *code, struct hotspot_top *ret)
{
	const uint8_t *at = code + PC;
	const bool pops = *at == POP_RBP;

	at += pops;
	for (int i = 0; i < MAX_POLL_INSTRUCTIONS; i++) {
		if (*at == RET) {
			*ret = (struct hotspot_top){pops ? WORD : 0, pops, false};
			return true;
		}
		const size_t length = poll_length(at);
		if (length == 0)
			return false;
		at += length;
	}
	return false;
}

void hotspot_frame_top(const uint8_t code[HOTSPOT_TOP_BYTES], uint64_t before, bool is_early,
                       uint32_t frame_bytes, struct hotspot_top *ret)
{
	const uint32_t whole = frame_bytes - WORD;

	*ret = (struct hotspot_top){.to_return = whole, .has_saved_fp = true, .is_made = !is_early};
	if (is_early)
		find_in_prologue(code, before, whole, ret);
	else
		find_in_epilogue(code, ret);
}

bool hotspot_frame_made_room(const uint8_t code[HOTSPOT_ADAPTER_BYTES], uint64_t bytes)
{
	const size_t length = 10; // of mov %rsp, %r13; sub $N, %rsp
	uint32_t far;

	for (size_t i = 0; i + length <= HOTSPOT_ADAPTER_BYTES; i++) {
		const uint8_t *sub = code + i + 3;
		if (memcmp(code + i, "\x4c\x8b\xec", 3) != 0 || !is_sub_sp(sub, length - 3))
			continue;
		memcpy(&far, sub + 3, sizeof(far));
		if (bytes == (sub[1] == 0x83 ? sub[3] : far))
			return true;
	}
	return false;
}
