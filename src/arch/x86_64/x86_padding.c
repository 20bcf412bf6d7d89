// SPDX-License-Identifier: MIT
#include "x86_padding.h"

#include "x86_instruction.h"

bool x86_padding_is_all(const uint8_t *code, size_t size)
{
	struct instruction i;

	for (size_t at = 0; at < size; at += i.length)
		if (!x86_instruction_decode(code + at, size - at, &i) ||
		    !x86_instruction_is_padding(&i))
			return false;
	return true;
}

static bool is_jump(const struct instruction *i)
{
	if (i->is_vector)
		return false;
	return i->map == MAP_ONE ? (i->opcode >= 0x70 && i->opcode <= 0x7f) || i->opcode == 0xe9 ||
	                               i->opcode == 0xeb
	                         : i->map == MAP_0F && i->opcode >= 0x80 && i->opcode <= 0x8f;
}

bool x86_padding_jumps_back(const uint8_t *code, size_t size)
{
	struct instruction i;

	for (size_t at = 0; x86_instruction_decode(code + at, size - at, &i); at += i.length)
		if (is_jump(&i) && (int64_t)(at + i.length) + i.immediate == 0)
			return true;
	return false;
}
