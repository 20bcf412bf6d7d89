// SPDX-License-Identifier: MIT
// unwind_libdw: runs libdw's own unwinder over our snapshots, as an oracle for ours; only for
// debugging.
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

// Unwinds the snapshot of thread `tid` (alive: its maps are read again whenever `generation`
// differs from the last call's). Stores up to max pcs, leaf first, as they are in registers and on
// the stack; returns how many, 0 if libdw cannot begin. *ret_why, owned by libdw until the next
// call, says why it ended, if that was not the root; else NULL.
size_t unwind_libdw_unwind(struct unwind_libdw *oracle, int tid, uint32_t generation,
                           const struct snapshot *snapshot, uint64_t *pcs, size_t max,
                           const char **ret_why);

// Returns the name of the file that libdw takes the address to lie in, and the address in it; "?"
// for none. Owned by the oracle until the next generation.
const char *unwind_libdw_module(struct unwind_libdw *oracle, uint64_t pc, uint64_t *ret_address);
