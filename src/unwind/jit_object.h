// SPDX-License-Identifier: MIT
// jit_object: makes an object file, whose code lies in memory by now, readable as that of a loaded
// program.
//
// LLVM's JIT compilers keep object files as they came from the compiler, but for the sections'
// addresses, in which they say where the code has come to lie (what GDB's "JIT Compilation
// Interface" lets them). Symbols and relocations are still relative to sections.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { JIT_OBJECT_MORE_BYTES = 64 };

// Moves symbols and the tables about the code (not the code itself) to the sections' addresses, in
// the `size` bytes at `bytes`, behind which there is room for JIT_OBJECT_MORE_BYTES more. Returns
// the size that it has then; 0: it is damaged. What is not an object file is left as it is.
size_t jit_object_place(uint8_t *bytes, size_t size);
