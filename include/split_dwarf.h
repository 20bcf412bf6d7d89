// split_dwarf: the .dwo file of a DWARF unit whose functions stand in a file of their own.
// For dwarf_unit.c only.
#pragma once

#include <stdbool.h>

// The DIE (a Dwarf_Die) of the split unit that belongs to the skeleton unit's DIE. False where the
// unit is not split, or its other half is not found.
bool split_dwarf_find(void *skeleton_die, void *ret_die);
