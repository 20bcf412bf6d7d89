// SPDX-License-Identifier: MIT
// dwarf_index: finds functions, source lines and inlined calls in a module's DWARF, by address.
//
// libdw's own look-ups walk a unit again for each address, and rely on .debug_aranges to find it.
// Here the map from address to unit is made from the units' own ranges, and a unit is walked once,
// when the first address in it is asked for.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Dwarf Dwarf; // <elfutils/libdw.h>

struct debug_places;
struct dwarf_index;

// One function at an address, inlined or not. Strings are as they stand in the file, of any bytes
// and length; they live until the next call of dwarf_index_find.
struct dwarf_level {
	const char *linkage_name; // mangled; NULL: none
	const char *name;         // as in the source, with its namespaces and classes; NULL: none
	bool is_assembly;         // then `name` is but one of the labels there
	const char *file;         // NULL: unknown
	const char *directory;    // what `file` is relative to, if it is; or NULL
	uint32_t line;            // in file: where it is, or where it calls the level before; or 0
	uint32_t start_line;      // of its declaration, 0: unknown
};

// Deeper levels of inlined calls are left out.
#define DWARF_MAX_LEVELS 256

// Indexes the units' ranges. `dwarf` is borrowed; NULL is accepted, and finds nothing.
// `package_fd`: of the file with its split units (split_package.h), taken over; -1: none.
// `places`: where such files are, too (debug_file.h); NULL: nowhere; what they point to is
// borrowed. The result is owned by the caller, never NULL.
struct dwarf_index *dwarf_index_create(Dwarf *dwarf, int package_fd,
                                       const struct debug_places *places);

// NULL is accepted.
void dwarf_index_destroy(struct dwarf_index *index);

// Finds the functions at an address of the DWARF file: the innermost inlined call first, the
// function whose machine code it is last. Fills `levels` (room for DWARF_MAX_LEVELS) and returns
// their number. An address with a line but without a function (assembly) gives one level without
// names.
size_t dwarf_index_find(struct dwarf_index *index, uint64_t address, struct dwarf_level *levels);
