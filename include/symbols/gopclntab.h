// SPDX-License-Identifier: MIT
// gopclntab: reads functions, source lines, inlined calls and frame sizes from a Go program's own
// table.
//
// Go's runtime itself unwinds and names functions with it, so it is there even in a program that is
// stripped of all else (-ldflags='-s -w'). Reads the tables of Go 1.16 and later (debug/gosym,
// pclntab.go; the runtime's symtab.go and symtabinl.go), and inlined calls of Go 1.18 and later.
// The target may put anything there: every offset is checked, and every loop is bounded.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwarf_level;
struct gopclntab;
struct module;
struct rule;

// Reads the module's table; NULL: it has none that can be read. It borrows the module's bytes,
// which must live as long; the caller owns it (free). Call this and all functions below in guarded
// work.
struct gopclntab *gopclntab_create(struct module *module);

// Finds the functions at an address in the module, as dwarf_index_find gives them. The module owns
// the strings.
size_t gopclntab_find(struct gopclntab *table, uint64_t address, struct dwarf_level *levels);

// Returns the name, owned by the module, of the function whose machine code is there; NULL: none.
const char *gopclntab_name(struct gopclntab *table, uint64_t address);

// Finds the address of the function with that name. Looks at `max` functions, one after the other,
// from the one that holds the address `from` on (0: from the first on). False if there is none.
bool gopclntab_find_name(struct gopclntab *table, const char *name, uint64_t from, size_t max,
                         uint64_t *ret);

// Finds the start of the function that holds the address. False if none does.
bool gopclntab_entry(struct gopclntab *table, uint64_t address, uint64_t *ret);

// internal/abi/symtab.go
enum {
	GO_TOP_FRAME = 1, // a stack ends there
	GO_WRITES_SP = 2, // in ways that its rules do not follow
};

// Returns what the runtime says of the function there, from Go 1.18 on; 0: nothing.
unsigned int gopclntab_flags(struct gopclntab *table, uint64_t address);

// Returns the function's FuncID (internal/abi/symtab.go), whose numbers depend on the version of
// Go; -1: there is no function.
int gopclntab_special(struct gopclntab *table, uint64_t address);

// Makes the unwinding rule for the address. False if the table has none.
bool gopclntab_rule(struct gopclntab *table, uint64_t address, struct rule *ret);
