// SPDX-License-Identifier: MIT
// jit_object: makes an object file, whose code is already in memory, readable like that of a loaded
// program.
//
// LLVM's JIT compilers keep object files as they came from the compiler, except for the sections'
// addresses: these say where the code now lies (as GDB's "JIT Compilation Interface" allows).
// Symbols and relocations are still relative to sections.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { JIT_OBJECT_MORE_BYTES = 64 };

// Moves symbols and the tables about the code (not the code itself) to the sections' addresses, in
// the `size` bytes at `bytes`, which JIT_OBJECT_MORE_BYTES more of room must follow. Returns the
// new size; 0: it is damaged. Leaves anything but an object file as it is.
size_t jit_object_place(uint8_t *bytes, size_t size);
