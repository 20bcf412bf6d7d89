// SPDX-License-Identifier: MIT
#include "luajit_code.h"

#include <string.h>

#include "arch.h"
#include "memory.h"
#include "rule.h"
#include "x86_registers.h"

enum {
	// The exit handler, from the point on where it has saved the registers.
	HANDLER_BYTES = 192,
	MAX_BEFORE_CALL = 64, // in it, from the state's load to the call
	MAX_AFTER_CALL = 48,  // and from the call to the end
};

const uint8_t luajit_code_dispatch = R14;

// Finds the last place of the bytes `what` that begins in [from, to); -1: there is none.
static int find_last(const uint8_t *bytes, int from, int to, const void *what, size_t size)
{
	while (to-- > from)
		if (memcmp(bytes + to, what, size) == 0)
			return to;
	return -1;
}

// From vm_x64.dasc, vm_exit_handler and vm_exit_interp:
//     mov state(%r14), %rbp; ...; call lj_trace_exit; mov frame(%rbp), %rcx; and $-4, %rcx; ...;
//     mov %rcx, %rsp
bool luajit_code_is_exit(const struct arch_code *code, uint64_t end, struct luajit_layout *ret)
{
	static const uint8_t load_state[] = {0x49, 0x8b, 0xae}, load_frame[] = {0x48, 0x8b, 0x4d},
	                     mask[] = {0x48, 0x83, 0xe1, 0xfc}, set_sp[] = {0x48, 0x89, 0xcc};
	const int mask_at = sizeof(load_frame) + 1, call_size = 5;
	uint8_t bytes[HANDLER_BYTES];

	if (code->read(code->context, end - sizeof(set_sp), bytes, sizeof(set_sp)) !=
	        sizeof(set_sp) ||
	    memcmp(bytes, set_sp, sizeof(set_sp)) != 0 ||
	    code->read(code->context, end - HANDLER_BYTES, bytes, HANDLER_BYTES) != HANDLER_BYTES)
		return false;
	const int masked = find_last(bytes, HANDLER_BYTES - MAX_AFTER_CALL,
	                             HANDLER_BYTES - (int)sizeof(mask), mask, sizeof(mask));
	const int frame = masked - mask_at;
	if (masked < 0 || frame < call_size)
		return false;
	if (memcmp(bytes + frame, load_frame, sizeof(load_frame)) != 0 ||
	    bytes[frame - call_size] != 0xe8)
		return false;
	const int state = find_last(bytes, frame - call_size - MAX_BEFORE_CALL, frame - call_size,
	                            load_state, sizeof(load_state));
	if (state < 0)
		return false;
	memcpy(&ret->state, bytes + state + sizeof(load_state), sizeof(ret->state));
	ret->frame = (int8_t)bytes[frame + sizeof(load_frame)];
	ret->vm = end;
	return true;
}

// Code that changes the stack pointer, and how far its CFA is from the row's after each number of
// its bytes.
struct change {
	const char *code;
	size_t size;
	int8_t off[16]; // 127: not where an instruction begins
};

enum { NONE = 127, FRAME_BYTES = 80, MAX_CHANGE_BYTES = 16 };

static const struct change changes[] = {
    // push %rbp; push %rbx; push %r15; push %r14; sub $0x28, %rsp
    {"\x55\x53\x41\x57\x41\x56\x48\x83\xec\x28",
     10,
     {-72, -64, -56, NONE, -48, NONE, -40, NONE, NONE, NONE}},
    // sub $0x10, %rsp; mov %r12, 0x10(%rsp); mov %r13, 8(%rsp); jmp *%rax
    {"\x48\x83\xec\x10\x4c\x89\x64\x24\x10\x4c\x89\x6c\x24\x08\xff\xe0",
     16,
     {NONE, NONE, NONE, NONE, 16, NONE, NONE, NONE, NONE, 16, NONE, NONE, NONE, NONE, 16, NONE}},
};

// Makes the row's rule for a CFA that is that far off. What is not pushed yet is unchanged.
static void shift_row(const struct rule *row, int64_t off, struct rule *ret)
{
	*ret = *row;
	ret->cfa_offset += off;
	ret->n_registers = 0;
	for (size_t i = 0; i < row->n_registers; i++)
		if (off >= 0 || row->registers[i].offset >= -ret->cfa_offset)
			ret->registers[ret->n_registers++] = row->registers[i];
}

bool luajit_code_refine(const struct arch_code *code, uint64_t address, const struct rule *row,
                        struct rule *ret)
{
	uint8_t bytes[MAX_CHANGE_BYTES];

	if (row->cfa_expression || row->cfa_register != ARCH_NATIVE->sp ||
	    row->cfa_offset != FRAME_BYTES)
		return false;
	for (size_t i = 0; i < array_size(changes); i++) {
		const struct change *change = &changes[i];
		for (size_t at = 0; at < change->size; at++) {
			if (change->off[at] == NONE ||
			    code->read(code->context, address - at, bytes, change->size) !=
			        change->size ||
			    memcmp(bytes, change->code, change->size) != 0)
				continue;
			shift_row(row, change->off[at], ret);
			return true;
		}
	}
	return false;
}
