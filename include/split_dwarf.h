// split_dwarf: the .dwo file of a DWARF unit whose functions stand in a file of their own.
// For dwarf_unit.c only.
#pragma once

#include <stdbool.h>

struct split_package;

// The DIE (a Dwarf_Die) of the split unit that belongs to the skeleton unit's DIE. False where the
// unit is not split, or its other half is not found.
bool split_dwarf_find(void *skeleton_die, void *ret_die);

// Opens the unit's .dwo file in one of the user's directories (NULL-terminated; or NULL): by the
// whole path that it was compiled to, or by its bare name. NULL: it is not there. Whether it
// belongs to the unit is for split_package_find to tell.
struct split_package *split_dwarf_open(const char *const *directories, void *skeleton_die);
