// SPDX-License-Identifier: MIT
#include "dwarf_index.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "debug_file.h"
#include "dwarf_unit.h"
#include "guard.h"
#include "interval_map.h"
#include "maps.h"
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
	Dwarf *dwarf; // has the list of units
	Dwarf *view;  // of the same file, through which units are read; owned; NULL: none yet
	uint64_t viewed_bytes;         // of the units that were read through it
	struct split_package *package; // NULL: none
	struct debug_places places;
	struct unit_slot *units;
	size_t n_units, units_capacity;
	struct interval_map map; // to positions in units
};

// libdw keeps all that it has read of a unit, for as long as a view of the file lives: once this
// much was read, another one begins.
#define MAX_VIEWED_BYTES (UINT64_C(48) << 20)

// Gives back the pages that libelf has mapped of the file. It has changed none of them, but in
// object files.
static void forget_pages(Elf *elf)
{
	struct maps maps = {0};
	GElf_Ehdr header;
	size_t size;

	const char *start = elf_rawfile(elf, &size);
	if (!start || !gelf_getehdr(elf, &header) || header.e_type == ET_REL)
		return;
	maps_read(&maps, getpid(), getpid());
	const struct mapping *mapping = maps_find(&maps, (uint64_t)(uintptr_t)start);
	if (mapping && mapping->inode && mapping->start == (uint64_t)(uintptr_t)start &&
	    size <= mapping->end - mapping->start)
		madvise((void *)(uintptr_t)mapping->start, mapping->end - mapping->start,
		        MADV_DONTNEED);
	maps_deinit(&maps);
}

static void end_view(struct dwarf_index *index)
{
	for (size_t i = 0; i < index->n_units; i++)
		dwarf_unit_destroy(take_pointer(index->units[i].unit));
	if (!index->view)
		return;
	dwarf_end(take_pointer(index->view));
	if (index->viewed_bytes > MAX_VIEWED_BYTES / 2)
		forget_pages(dwarf_getelf(index->dwarf));
	index->viewed_bytes = 0;
}

// Leaves the work on the file, where libdw would end the process.
static __attribute__((noreturn)) void on_no_memory(void)
{
	guard_leave(GUARD_MEMORY);
	_exit(1);
}

static Dwarf *view_of(struct dwarf_index *index, uint64_t unit_bytes)
{
	if (index->viewed_bytes && index->viewed_bytes + unit_bytes > MAX_VIEWED_BYTES)
		end_view(index);
	index->viewed_bytes += unit_bytes;
	if (!index->view) {
		index->view = dwarf_begin_elf(dwarf_getelf(index->dwarf), DWARF_C_READ, NULL);
		if (index->view)
			dwarf_new_oom_handler(index->view, on_no_memory);
		if (index->view)
			dwarf_setalt(index->view, dwarf_getalt(index->dwarf) ?: (Dwarf *)-1);
	}
	return index->view ? index->view : index->dwarf;
}

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
	if (dwarf)
		dwarf_new_oom_handler(dwarf, on_no_memory);
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
	end_view(index);
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
		slot->unit = dwarf_unit_create(view_of(index, slot->end_offset - slot->die_offset),
		                               index->package, &index->places, slot->die_offset,
		                               slot->end_offset);
	return dwarf_unit_find(slot->unit, address, levels);
}
