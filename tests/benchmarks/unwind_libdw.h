// SPDX-License-Identifier: MIT
// unwind_libdw: runs libdw's own unwinder over our snapshots, to be compared with
// ours.
//
// It shares with ours the registers, the copied memory and libdw's reading of CFI, and nothing
// else: it opens the modules by itself, applies the rules by itself, and caches nothing.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct snapshot;
struct unwind_libdw;

// Never NULL; has no modules until the first stack.
struct unwind_libdw *unwind_libdw_create(void);
void unwind_libdw_destroy(struct unwind_libdw *oracle);

// Unwinds the snapshot of thread `tid`, which is alive; its maps are read at the first call. Stores
// up to max pcs, leaf first, as they are in registers and on the stack; returns how many, 0 if
// libdw cannot begin.
size_t unwind_libdw_unwind(struct unwind_libdw *oracle, int tid, const struct snapshot *snapshot,
                           uint64_t *pcs, size_t max);
