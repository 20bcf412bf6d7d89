// SPDX-License-Identifier: MIT
// jit_eh_frame: unwinding tables whose pointers are relative to the code, of images that JIT
// compilers make for debuggers.
//
// PHP's and LuaJIT's make them by one template (Mike Pall's lj_gdbjit.c), with
// DW_EH_PE_textrel | DW_EH_PE_udata4 and without relocations: GDB adds .text's address. libdw adds
// nothing.
#pragma once

#include <stddef.h>
#include <stdint.h>

// The bytes of an .eh_frame, to be changed in place, which is to lie at `address`, and where .text
// does.
struct jit_eh_frame {
	uint8_t *bytes;
	size_t size;
	uint64_t address, text;
};

// Makes such pointers relative to where they stand, or absolute where they have eight bytes. A
// table with others, or that is damaged, is left as it is from there on.
void jit_eh_frame_place(const struct jit_eh_frame *frame);
