// SPDX-License-Identifier: MIT
#include "returned_variable.h"

#include <stddef.h>
#include <string.h>

#include "x86_instruction.h"

enum { MOV_FROM_MEMORY = 0x8b, RIP_RELATIVE = 5, RET = 0xc3 };

// [endbr64;] mov displacement(%rip), %rax; ret
bool returned_variable(const uint8_t code[RETURNED_VARIABLE_CODE_BYTES], uint64_t address,
                       uint64_t *ret)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const size_t at = memcmp(code, endbr64, sizeof(endbr64)) == 0 ? sizeof(endbr64) : 0;
	struct instruction load;

	if (!x86_instruction_decode(code + at, RETURNED_VARIABLE_CODE_BYTES - at, &load))
		return false;
	const size_t end = at + load.length;
	if (load.map != MAP_ONE || load.opcode != MOV_FROM_MEMORY || !load.wide || load.reg != 0 ||
	    load.mod != 0 || load.rm != RIP_RELATIVE || end >= RETURNED_VARIABLE_CODE_BYTES ||
	    code[end] != RET)
		return false;
	*ret = address + end + (uint64_t)(int64_t)load.displacement;
	return true;
}
