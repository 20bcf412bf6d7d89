// SPDX-License-Identifier: MIT
// demangle: turns the linker's names into those that the programmer wrote: C++, Rust (both
// schemes), D, and Python where Cython or mypyc has made C of it.
#pragma once

// Longer names stay as they are.
#define DEMANGLE_MAX_INPUT_BYTES 4096
// So do names that would become longer than this: a few hundred bytes can stand for gigabytes.
#define DEMANGLE_MAX_OUTPUT_BYTES 65536

// Returns the demangled name, owned by the caller; NULL: the name is not mangled, or by an unknown
// rule. A compiler's suffix stays visible: `f() [clone .cold]`. Takes any bytes.
char *demangle(const char *name);

// Does the same, but never returns NULL: a name that is not mangled is copied, without a symbol
// version (`memcpy@@GLIBC_2.14`).
char *demangle_or_copy(const char *name) __attribute__((returns_nonnull));
