// SPDX-License-Identifier: MIT
// split_dwarf: finds the .dwo file of a DWARF unit whose functions are in a file of their own. For
// dwarf_unit.c only.
//
// libdw would find it by itself, and open whatever is at the path that the file names.
#pragma once

struct debug_places;
struct split_package;

enum split_dwarf_place {
	SPLIT_DWARF_COMPILED, // at the path that it was compiled to
	SPLIT_DWARF_KEPT, // in one of the user's directories: at that path there, or by its name
};

// Opens the unit's .dwo file in that place; places NULL: nowhere. NULL: it is not there.
// split_package_find tells whether it belongs to the unit.
struct split_package *split_dwarf_open(const struct debug_places *places, void *skeleton_die,
                                       enum split_dwarf_place place);
