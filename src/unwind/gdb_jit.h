// SPDX-License-Identifier: MIT
// gdb_jit: finds code that a process makes while it runs, by what it tells a debugger.
//
// A JIT compiler that wants its code to be debugged keeps ELF images that describe it in its
// memory, in a list that begins at the variable __jit_debug_descriptor (GDB's manual, "JIT
// Compilation Interface"). QEMU, LLVM (and so PostgreSQL) and Mono do so. The list is read while
// the process runs: when its head has changed, and now and then in case a change does not show.
// While it is known to have changed and has not been read again, none of its images is believed.
// The target may write anything there: the list's length, and what its images hold, are bounded.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct gdb_jit;
struct module;

#define GDB_JIT_DESCRIPTOR "__jit_debug_descriptor"

// An ELF image.
struct gdb_jit_image {
	uint64_t entry;         // the address of its entry in the list
	uint64_t address, size; // where it lies
	uint64_t headers_hash;  // hash of its headers: of the code that it says it describes
	struct module *module;  // NULL: not made yet; for the callers of gdb_jit_find
	bool is_unusable;       // for the same callers
};

// Creates an empty list. Never NULL. The caller owns it.
struct gdb_jit *gdb_jit_create(void);
void gdb_jit_destroy(struct gdb_jit *jit); // NULL is accepted

// Replaces the addresses of the process's descriptors.
void gdb_jit_forget(struct gdb_jit *jit);
void gdb_jit_add_descriptor(struct gdb_jit *jit, uint64_t address);

// Looks whether the lists have changed, and reads them again through thread `tid` if that is not
// too much work. True if gdb_jit_find may now give other answers.
bool gdb_jit_update(struct gdb_jit *jit, int tid, int64_t now_ns);

// Returns the image of the code at the address of the process, or NULL. Owned by jit until the next
// update.
struct gdb_jit_image *gdb_jit_find(const struct gdb_jit *jit, uint64_t address);

// Copies the image from the process into a file of its own, and returns its fd, which the caller
// owns; -1: it cannot be read, or has changed.
int gdb_jit_copy(struct gdb_jit *jit, int tid, const struct gdb_jit_image *image);
