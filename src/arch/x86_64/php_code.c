// SPDX-License-Identifier: MIT
#include "php_code.h"

#include <string.h>

#include "x86_code.h"

static const uint8_t dispatch[] = {0x41, 0xff, 0x27}; // jmp *(%r15)

const uint8_t *php_code_find_dispatch(const uint8_t *code, size_t size)
{
	return memmem(code, size, dispatch, sizeof(dispatch));
}

bool php_code_way_to_handler(const struct arch_code *code, uint64_t address, int64_t *ret)
{
	return x86_code_way_to_handler(code, address, ret);
}
