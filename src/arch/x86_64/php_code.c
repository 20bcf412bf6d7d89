// SPDX-License-Identifier: MIT
#include "php_code.h"

#include <string.h>

#include "x86_code.h"
#include "x86_instruction.h"

static const uint8_t dispatch[] = {0x41, 0xff, 0x27}; // jmp *(%r15)

const uint8_t *php_code_find_dispatch(const uint8_t *code, size_t size)
{
	return memmem(code, size, dispatch, sizeof(dispatch));
}

static bool is_jump_to_handler(const struct instruction *i)
{
	const uint8_t next_operation = 15; // the machine's number of its register

	return i->map == MAP_ONE && !i->is_vector && i->opcode == 0xff && i->reg_field == 4 &&
	       i->plain_base && i->rm == next_operation && i->displacement == 0;
}

bool php_code_way_to_handler(const struct arch_code *code, uint64_t address, int64_t *ret)
{
	return x86_code_way_to_jump(code, address, is_jump_to_handler, ret);
}
