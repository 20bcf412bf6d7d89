// SPDX-License-Identifier: MIT
// x86_instruction: decodes x86-64 machine code as far as following it needs: where an instruction
// ends, and which registers it names and may write. Not what it computes.
//
// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and appendix A.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { X86_MAX_INSTRUCTION_BYTES = 15 };

// The machine's numbers of some registers.
enum {
	MACHINE_BX = 3,
	MACHINE_SP = 4,
	MACHINE_BP = 5,
	MACHINE_R10 = 10,
	MACHINE_R11 = 11,
	MACHINE_R13 = 13,
};

// VEX, EVEX and XOP name maps by number.
enum opcode_map {
	MAP_ONE = 0,
	MAP_0F = 1,
	MAP_0F38 = 2,
	MAP_0F3A = 3,
	MAP_OTHER = 4,
	MAP_XOP_8 = 8,
	MAP_XOP_10 = 10,
};

struct instruction {
	size_t length;
	uint8_t map; // enum opcode_map
	uint8_t opcode;
	bool is_vector; // VEX, EVEX or XOP
	bool wide;      // REX.W
	bool has_rex;
	bool has_modrm;
	uint8_t mod, reg, rm; // with REX's bits
	uint8_t reg_field;    // without them
	uint8_t more;         // VEX's third register
	bool plain_base;      // memory at register `rm` + displacement
	bool by_fs;           // memory is counted from the thread's block
	bool by_pc;           // memory is counted from where the instruction ends
	uint8_t low;          // the opcode's own register, with REX.B
	int32_t displacement;
	int64_t immediate;
};

// Decodes the instruction at the first of `size` bytes. False if it is cut, or there is none in
// 64-bit mode.
bool x86_instruction_decode(const uint8_t *bytes, size_t size, struct instruction *ret);

// Returns the general registers that it may write, by the machine's numbers: rather too many than
// too few. Those that it does not name (the stack pointer of push and pop, ...) are not included.
uint16_t x86_instruction_may_write(const struct instruction *i);

// Returns those that it may write without naming them, except the stack pointer: rather too many,
// too.
uint16_t x86_instruction_implicit(const struct instruction *i);

// True if it sets the register to the stack pointer + *ret_offset: mov %rsp, %reg or
// lea x(%rsp), %reg.
bool x86_instruction_sets_to_sp(const struct instruction *i, uint8_t number, int32_t *ret_offset);

// True if it stands between functions: nop and int3.
bool x86_instruction_is_padding(const struct instruction *i);
