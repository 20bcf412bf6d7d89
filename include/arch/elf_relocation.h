// SPDX-License-Identifier: MIT
// elf_relocation: tells what the types of an ELF file's relocations (R_*) mean.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Returns how many bytes it writes, if it writes a symbol's address, and whether that is relative
// to its own place; 0: it is of another type.
size_t elf_relocation_width(uint32_t type, bool *ret_is_relative);

// True if it writes the address of a function into its slot of the global offset table.
bool elf_relocation_binds(uint32_t type);

// True if it binds to the function that the one at the addend returns (IFUNC).
bool elf_relocation_chooses(uint32_t type);

// True if it adds the file's load address to a value.
bool elf_relocation_moves(uint32_t type);
