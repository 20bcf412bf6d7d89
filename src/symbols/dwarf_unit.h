// SPDX-License-Identifier: MIT
// dwarf_unit: the functions and inlined calls of one DWARF unit, indexed by one walk over its DIEs.
// For dwarf_index.c only.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Dwarf Dwarf; // <elfutils/libdw.h>

struct debug_places;
struct dwarf_level;
struct dwarf_unit;
struct interval_map;
struct split_base;
struct split_package;

// Walks the unit whose DIE is at `die_offset` of .debug_info and which ends at `end_offset`. The
// result is owned by the caller, never NULL; `dwarf` is borrowed, and so are `package` and
// `places`, where split units may be (debug_file.h), which may be NULL.
struct dwarf_unit *dwarf_unit_create(Dwarf *dwarf, struct split_package *package,
                                     const struct debug_places *places, uint64_t die_offset,
                                     uint64_t end_offset);

// NULL is accepted.
void dwarf_unit_destroy(struct dwarf_unit *unit);

// As dwarf_index_find, within the unit.
size_t dwarf_unit_find(struct dwarf_unit *unit, uint64_t address, struct dwarf_level *levels);

// Adds the address ranges of the DIE (a Dwarf_Die) to the map, at most `*budget` of them, and
// takes them off it. Returns whether there were any. `split`: of a unit out of a package, or NULL.
bool dwarf_unit_add_ranges(void *die, struct interval_map *map, uint32_t value, uint32_t priority,
                           const struct split_base *split, size_t *budget);
