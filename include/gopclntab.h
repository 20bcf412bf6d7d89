// gopclntab: functions, source lines, inlined calls and frame sizes from a Go program's own table.
//
// Go's runtime unwinds and names by it, so that it is there even in a program that is stripped of
// all else (-ldflags='-s -w'). Read are the tables of Go 1.16 and later (debug/gosym, pclntab.go;
// the runtime's symtab.go and symtabinl.go), inlined calls of Go 1.18 and later. The table is of
// the target's making: every offset is checked, and every loop is bounded.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwarf_level;
struct gopclntab;
struct module;
struct rule;

// The module's table; NULL: it has none that can be read. It borrows the module's bytes, which must
// live as long; the caller owns it (free). To be called in guarded work, as all of these.
struct gopclntab *gopclntab_create(struct module *module);

// The functions at an address in the module, in the way of dwarf_index_find. Strings are the
// module's.
size_t gopclntab_find(struct gopclntab *table, uint64_t address, struct dwarf_level *levels);

// The name of the function that stands in the machine code there, the module's; NULL: none.
const char *gopclntab_name(struct gopclntab *table, uint64_t address);

// Does a stack end in the function there? Says the runtime, from Go 1.18 on.
bool gopclntab_is_root(struct gopclntab *table, uint64_t address);

// The unwinding rule for the address; false: the table has none.
bool gopclntab_rule(struct gopclntab *table, uint64_t address, struct rule *ret);
