// SPDX-License-Identifier: MIT
#include "dwarf_index.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdlib.h>

#include "debug_file.h"
#include "dwarf_unit.h"
#include "interval_map.h"
#include "memory.h"
#include "split_package.h"

// Of all units together; far more than the largest programs have.
enum { MAX_RANGES = 1 << 24 };

struct unit_slot {
	uint64_t die_offset;     // of the unit's DIE in .debug_info
	uint64_t end_offset;     // of the unit
	struct dwarf_unit *unit; // NULL: not walked yet
};

struct dwarf_index {
	Dwarf *dwarf;
	struct split_package *package; // NULL: none
	struct debug_places places;
	struct unit_slot *units;
	size_t n_units, units_capacity;
	struct interval_map map; // to positions in units
};

static void add_unit(struct dwarf_index *index, uint64_t die_offset, uint64_t end_offset,
                     size_t *budget)
{
	Dwarf_Die die;

	if (!dwarf_offdie(index->dwarf, die_offset, &die))
		return;
	int tag = dwarf_tag(&die);
	if (tag != DW_TAG_compile_unit && tag != DW_TAG_partial_unit && tag != DW_TAG_skeleton_unit)
		return;
	uint32_t id = (uint32_t)index->n_units;
	if (!dwarf_unit_add_ranges(&die, &index->map, id, 0, NULL, budget))
		return;
	*array_push(index->units, index->n_units, index->units_capacity) =
	    (struct unit_slot){.die_offset = die_offset, .end_offset = end_offset};
}

static void read_units(struct dwarf_index *index)
{
	Dwarf_Off offset = 0, next;
	size_t header_bytes, budget = MAX_RANGES;

	while (index->n_units < INTERVAL_NONE &&
	       dwarf_next_unit(index->dwarf, offset, &next, &header_bytes, NULL, NULL, NULL, NULL,
	                       NULL, NULL) == 0) {
		if (next <= offset)
			break;
		add_unit(index, offset + header_bytes, next, &budget);
		offset = next;
	}
}

struct dwarf_index *dwarf_index_create(Dwarf *dwarf, int package_fd,
                                       const struct debug_places *places)
{
	struct dwarf_index *index = memory_alloc_zeroed(1, sizeof(*index));

	index->dwarf = dwarf;
	if (places)
		index->places = *places;
	index->package = split_package_open(package_fd);
	if (dwarf)
		read_units(index);
	interval_map_build(&index->map);
	return index;
}

void dwarf_index_destroy(struct dwarf_index *index)
{
	if (!index)
		return;
	for (size_t i = 0; i < index->n_units; i++)
		dwarf_unit_destroy(index->units[i].unit);
	free(index->units);
	split_package_close(index->package);
	interval_map_deinit(&index->map);
	free(index);
}

size_t dwarf_index_find(struct dwarf_index *index, uint64_t address, struct dwarf_level *levels)
{
	uint32_t id = interval_map_find(&index->map, address);

	if (id == INTERVAL_NONE)
		return 0;
	struct unit_slot *slot = &index->units[id];
	if (!slot->unit)
		slot->unit = dwarf_unit_create(index->dwarf, index->package, &index->places,
		                               slot->die_offset, slot->end_offset);
	return dwarf_unit_find(slot->unit, address, levels);
}
