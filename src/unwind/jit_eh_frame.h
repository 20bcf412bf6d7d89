// SPDX-License-Identifier: MIT
// jit_eh_frame: adjusts unwinding tables whose pointers are relative to the code, in images that
// JIT compilers make for debuggers.
//
// PHP's and LuaJIT's compilers make them from one template (Mike Pall's lj_gdbjit.c), with
// DW_EH_PE_textrel | DW_EH_PE_udata4 and without relocations: GDB adds .text's address. libdw adds
// nothing.
#pragma once

#include <stddef.h>
#include <stdint.h>

// The bytes of an .eh_frame, which are changed in place, the address where it is to lie, and that
// of .text.
struct jit_eh_frame {
	uint8_t *bytes;
	size_t size;
	uint64_t address, text;
};

// Makes such pointers relative to their own place, or absolute if they have eight bytes. From the
// first entry on that has other pointers or is damaged, the table is left as it is.
void jit_eh_frame_place(const struct jit_eh_frame *frame);
