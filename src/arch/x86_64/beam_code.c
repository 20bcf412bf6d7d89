// SPDX-License-Identifier: MIT
#include "beam_code.h"

#include <string.h>

#include "arch.h"
#include "x86_instruction.h"
#include "x86_registers.h"

enum {
	MAX_INSTRUCTIONS = 64,  // until a jump
	MAX_MAIN_BYTES = 2048,  // of process_main
	MIN_FRAME_BYTES = 4096, // it has the registers of a scheduler
	MAX_FRAME_BYTES = 1 << 20,
	MAX_OFFSET = 4096,
	SHAPE_BYTES = 4,
	HEADER_BYTES = 40, // ErtsCodeInfo (erts/emulator/beam/code_ix.h)
};

const uint8_t beam_code_registers = BEAM_REGISTERS, beam_code_process = BEAM_PROCESS;

// Reads lea sp_offset(%rbx), %rsp, and mov process_sp_offset(%r13), %rsp.
static void find_offset(const struct instruction *i, struct beam_layout *layout)
{
	if (i->map != MAP_ONE || i->is_vector || !i->wide || i->reg != MACHINE_SP || !i->plain_base)
		return;
	if (i->opcode == 0x8d && i->rm == MACHINE_BX)
		layout->sp_offset = i->displacement;
	if (i->opcode == 0x8b && i->rm == MACHINE_R13)
		layout->process_sp_offset = i->displacement;
}

// Reads the instructions at the address up to a jump. *ret_end is behind it, *ret_target where it
// leads.
static bool follow_to_jump(const struct arch_code *code, uint64_t address,
                           struct beam_layout *layout, uint64_t *ret_end, uint64_t *ret_target)
{
	uint8_t bytes[X86_MAX_INSTRUCTION_BYTES];
	struct instruction i;

	for (int n = 0; n < MAX_INSTRUCTIONS; n++) {
		const size_t size = code->read(code->context, address, bytes, sizeof(bytes));
		if (!x86_instruction_decode(bytes, size, &i))
			return false;
		address += i.length;
		find_offset(&i, layout);
		if (i.map != MAP_ONE || i.is_vector || (i.opcode != 0xe9 && i.opcode != 0xeb))
			continue;
		*ret_end = address;
		*ret_target = address + (uint64_t)i.immediate;
		return true;
	}
	return false;
}

// Finds where process_main begins, in the code before its last part: sub $N, %rsp; and $-64, %rsp.
static bool find_main(const struct arch_code *code, uint64_t last, struct beam_layout *layout)
{
	static const uint8_t sub[] = {0x48, 0x81, 0xec}, align[] = {0x48, 0x83, 0xe4, 0xc0};
	enum { ALIGN_AT = sizeof(sub) + 4, SIZE = ALIGN_AT + sizeof(align) };
	uint8_t bytes[MAX_MAIN_BYTES];

	if (code->read(code->context, last - sizeof(bytes), bytes, sizeof(bytes)) != sizeof(bytes))
		return false;
	for (size_t at = sizeof(bytes) - SIZE + 1; at-- > 0;) {
		if (memcmp(bytes + at, sub, sizeof(sub)) != 0 ||
		    memcmp(bytes + at + ALIGN_AT, align, sizeof(align)) != 0)
			continue;
		layout->main = last - sizeof(bytes) + at;
		memcpy(&layout->frame_bytes, bytes + at + sizeof(sub), sizeof(layout->frame_bytes));
		return true;
	}
	return false;
}

static bool is_offset(int64_t offset)
{
	return offset > 0 && offset <= MAX_OFFSET && offset % 8 == 0;
}

bool beam_code_read(const struct arch_code *code, uint64_t normal_exit, struct beam_layout *ret)
{
	struct beam_layout layout = {.normal_exit = normal_exit};
	uint64_t schedule, elsewhere;

	if (!follow_to_jump(code, normal_exit, &layout, &layout.normal_exit_end, &schedule) ||
	    !follow_to_jump(code, schedule, &layout, &layout.main_end, &elsewhere) ||
	    !find_main(code, schedule, &layout) || !is_offset(-(int64_t)layout.sp_offset) ||
	    !is_offset(layout.process_sp_offset) || layout.frame_bytes < MIN_FRAME_BYTES ||
	    layout.frame_bytes > MAX_FRAME_BYTES || layout.frame_bytes % 16 != 0)
		return false;
	*ret = layout;
	return true;
}

static bool read_shape(const struct arch_code *code, uint64_t address, uint8_t *ret)
{
	return code->read(code->context, address, ret, SHAPE_BYTES) == SHAPE_BYTES;
}

// True if a function begins so: with a jmp over a call for breakpoints (beam_asm_module.cpp,
// emit_i_breakpoint_trampoline).
static bool begins_function(const uint8_t *shape)
{
	return shape[0] == 0xeb && shape[1] == 0x06 && shape[3] == 0xe8;
}

bool beam_code_is_tail_call(const struct arch_code *code, uint64_t address)
{
	static const uint8_t jump[SHAPE_BYTES] = {0x42, 0xff, 0x24, 0xe0};
	uint8_t shape[SHAPE_BYTES];

	return read_shape(code, address, shape) &&
	       (memcmp(shape, jump, sizeof(jump)) == 0 || begins_function(shape));
}

bool beam_code_is_header(const struct arch_code *code, uint64_t address)
{
	uint8_t shape[SHAPE_BYTES];

	return read_shape(code, address + HEADER_BYTES, shape) && begins_function(shape);
}
