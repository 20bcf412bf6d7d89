// SPDX-License-Identifier: MIT
#include "elf_relocation.h"

#include <elf.h>

size_t elf_relocation_width(uint32_t type, bool *ret_is_relative)
{
	*ret_is_relative = type == R_X86_64_PC32 || type == R_X86_64_PC64;
	switch (type) {
	case R_X86_64_64:
	case R_X86_64_PC64:
		return 8;
	case R_X86_64_32:
	case R_X86_64_32S:
	case R_X86_64_PC32:
		return 4;
	default:
		return 0;
	}
}

bool elf_relocation_binds(uint32_t type)
{
	return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}

bool elf_relocation_chooses(uint32_t type)
{
	return type == R_X86_64_IRELATIVE;
}

bool elf_relocation_moves(uint32_t type)
{
	return type == R_X86_64_RELATIVE;
}
