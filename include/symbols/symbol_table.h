// SPDX-License-Identifier: MIT
// symbol_table: holds the names of functions in a module's ELF symbol tables, sorted by address.
//
// Built once from .symtab (the module's own or its separate debug file's), .dynsym and
// .gnu_debugdata, as libdwfl finds them; libdwfl's own look-up is linear. The entries of the
// procedure linkage table are named after the function that they lead to.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct Dwfl_Module Dwfl_Module; // <elfutils/libdwfl.h>

struct symbol_table;

// Makes the table of a module at bias 0, owned by the caller; never NULL, perhaps empty. Names are
// borrowed from the Dwfl_Module, which must live longer.
struct symbol_table *symbol_table_create(Dwfl_Module *module);

// True for names that assemblers and compilers give to places that are not functions.
bool symbol_table_is_label(const char *name);

// Finds the address in the file of the symbol of that name and type (STT_*), in the file's own
// tables. False if it has none. Call it in guarded work.
bool symbol_table_find_named(Dwfl_Module *module, const char *name, unsigned int type,
                             uint64_t *ret);

// NULL is accepted.
void symbol_table_destroy(struct symbol_table *table);

// The raw name of the function at the address in the file, owned by the table; NULL: none.
//
// A symbol's size is honoured; one without a size (assembly) goes up to the next symbol or its
// section's end, but yields to any with a size. Several names for the same code: an exported one
// (global or weak) before a local one, then the one with fewer underscores in front, then a global
// one before a weak one: `write`, which people know, and not `__GI___write` or `__write`.
const char *symbol_table_find(const struct symbol_table *table, uint64_t address);

// True if the name at the address is that of a symbol without a size, which begins at *ret_start.
bool symbol_table_is_unsized(const struct symbol_table *table, uint64_t address,
                             uint64_t *ret_start);

// True if it has no local symbols: there may be functions without one.
bool symbol_table_is_stripped(const struct symbol_table *table);

// Returns the name that people know better than `name`, which debugging information has for the
// function at the address: an exported one if `name` is not exported, or one with fewer underscores
// in front. NULL: `name` is not one of the function's names in this table, or none is better.
const char *symbol_table_find_better(const struct symbol_table *table, uint64_t address,
                                     const char *name);

// Returns the first name that fits; NULL: none does. It asks for all of them.
const char *symbol_table_find_fitting(const struct symbol_table *table,
                                      bool (*fits)(const char *name, const char *wanted),
                                      const char *wanted);
