// SPDX-License-Identifier: MIT
#include "hotspot_code.h"

#include <stdbool.h>
#include <string.h>

#include "arch.h"
#include "rule.h"
#include "x86_registers.h"

enum {
	MAX_METHOD_BYTES = 256 << 10, // that are searched; larger ones are rare
	CHUNK_BYTES = 4096,
	PROLOGUE_BYTES = 8,
	MAX_BANG_BYTES = 4 << 20,
};

// True for mov %eax, -N(%rsp), with N whole pages (is the stack still large enough?); push %rbp
// (MacroAssembler::verified_entry, LIR_Assembler::build_frame, cpu/x86 in OpenJDK's sources).
static bool is_prologue(const uint8_t *bytes)
{
	static const uint8_t mov[] = {0x89, 0x84, 0x24};
	const uint8_t push_rbp = 0x55;
	int32_t displacement;

	if (bytes[0] != mov[0] || memcmp(bytes, mov, sizeof(mov)) != 0 || bytes[7] != push_rbp)
		return false;
	memcpy(&displacement, bytes + sizeof(mov), sizeof(displacement));
	return displacement < 0 && displacement >= -MAX_BANG_BYTES && displacement % 4096 == 0;
}

uint64_t hotspot_code_find_start(const struct arch_code *code, uint64_t address)
{
	uint8_t bytes[CHUNK_BYTES + PROLOGUE_BYTES - 1];

	// Each chunk reaches into the next one, by less than the length of what is looked for.
	for (uint64_t end = address; end > CHUNK_BYTES && address - end < MAX_METHOD_BYTES;
	     end -= CHUNK_BYTES) {
		const uint64_t start = end - CHUNK_BYTES;
		const size_t n = code->read(code->context, start, bytes, sizeof(bytes));
		for (size_t at = n < sizeof(bytes) ? 0 : CHUNK_BYTES; at-- > 0;)
			if (is_prologue(bytes + at))
				return start + at;
		if (n < sizeof(bytes))
			return 0; // nothing is mapped there
	}
	return 0;
}

bool hotspot_code_is_dispatch(const struct arch_code *code, uint64_t end)
{
	// movabs $table, %r10; jmp *(%r10,%rbx,8) (InterpreterMacroAssembler::dispatch_base).
	static const uint8_t mov[] = {0x49, 0xba}, jmp[] = {0x41, 0xff, 0x24, 0xda};
	uint8_t bytes[sizeof(mov) + sizeof(uint64_t) + sizeof(jmp)];

	return code->read(code->context, end - sizeof(bytes), bytes, sizeof(bytes)) ==
	           sizeof(bytes) &&
	       memcmp(bytes, mov, sizeof(mov)) == 0 &&
	       memcmp(bytes + sizeof(bytes) - sizeof(jmp), jmp, sizeof(jmp)) == 0;
}

// The callee's locals are put between its frame and its caller's, which has no room for them: the
// caller's stack pointer is kept next to the frame pointer (frame_x86.hpp: interpreter frame).
void hotspot_code_interpreter_rule(struct rule *ret)
{
	*ret = (struct rule){
	    .kind = RULE_CODE,
	    .cfa_register = RBP,
	    .cfa_offset = 16,
	    .n_registers = 3,
	    .registers = {{.number = RSP, .kind = REGISTER_AT_CFA, .offset = -24},
	                  {.number = RBP, .kind = REGISTER_AT_CFA, .offset = -16},
	                  {.number = RIP, .kind = REGISTER_AT_CFA, .offset = -8}},
	};
	ret->registers[ret->n_registers++] =
	    (struct register_rule){.number = RBX, .kind = REGISTER_UNDEFINED};
	for (uint8_t i = R12; i <= R15; i++)
		ret->registers[ret->n_registers++] =
		    (struct register_rule){.number = i, .kind = REGISTER_UNDEFINED};
}

bool hotspot_code_is_return_barrier(const struct arch_code *code, uint64_t address)
{
	// mov N(%r15), %rsp (the thread's innermost continuation); push %rax; sub $16, %rsp (the
	// returned value; StubGenerator::generate_cont_thaw, cpu/x86).
	static const uint8_t mov[] = {0x49, 0x8b, 0xa7}, save[] = {0x50, 0x48, 0x83, 0xec, 0x10};
	const size_t saved_at = sizeof(mov) + sizeof(int32_t);
	uint8_t bytes[sizeof(mov) + sizeof(int32_t) + sizeof(save)];

	return code->read(code->context, address, bytes, sizeof(bytes)) == sizeof(bytes) &&
	       memcmp(bytes, mov, sizeof(mov)) == 0 &&
	       memcmp(bytes + saved_at, save, sizeof(save)) == 0;
}
