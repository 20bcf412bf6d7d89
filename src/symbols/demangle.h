// SPDX-License-Identifier: MIT
// demangle: names as the programmer wrote them, from the linker's: C++, Rust (both schemes), D.
#pragma once

#include <stddef.h>

// Longer names stay as they are.
#define DEMANGLE_MAX_INPUT_BYTES 4096
// So do names that would become longer than that: a few hundred bytes can stand for gigabytes.
#define DEMANGLE_MAX_OUTPUT_BYTES 65536

// The demangled name, owned by the caller; NULL: the name is not mangled, or by an unknown rule. A
// compiler's suffix stays visible: `f() [clone .cold]`. Takes any bytes.
char *demangle(const char *name);

// As demangle, but never NULL: what is not mangled is copied, without a symbol version
// (`memcpy@@GLIBC_2.14`).
char *demangle_or_copy(const char *name) __attribute__((returns_nonnull));
