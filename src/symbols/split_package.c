// SPDX-License-Identifier: MIT
#include "split_package.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch.h"
#include "memory.h"

// The sections of a split unit, shown to libdw under the names of an ordinary one: otherwise it
// would not look at the program's .debug_addr.
enum part {
	PART_INFO,
	PART_ABBREV,
	PART_LINE,
	PART_STR_OFFSETS,
	PART_RANGE_LISTS,
	N_SLICED, // parts of which each unit has its own slice; the others are whole
	PART_STR = N_SLICED,
	PART_ADDR,
	PART_RANGES,
	N_PARTS,
};

static const char *const names[N_PARTS] = {
    ".debug_info",     ".debug_abbrev", ".debug_line", ".debug_str_offsets",
    ".debug_rnglists", ".debug_str",    ".debug_addr", ".debug_ranges",
};

enum {
	MAX_COLUMNS = 16,
	MAX_TYPE_UNITS = 1 << 20, // of a .dwo file
	NAME_SIZE = 24,
	FIRST_SECTION = 1,
	NAMES_SECTION = N_PARTS + 1,
	HEADER_BYTES = 16, // of a unit, at least: with 64-bit DWARF, up to its type
};

struct bytes {
	const unsigned char *data;
	size_t size;
};

// An ELF file of sections without contents, to which the parts are then put.
struct image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[N_PARTS + 2];
	char names[N_PARTS + 1][NAME_SIZE];
};

struct unit {
	struct image *image;
	Elf *elf;
	Dwarf *dwarf;
};

struct split_package {
	int fd;
	Elf *elf;
	struct bytes parts[N_PARTS]; // of the package; sliced by the index
	struct bytes index;          // .debug_cu_index
	bool is_unit;                // a .dwo file: no index, all of it is one unit's
	uint32_t version, n_columns, n_units, n_slots;
	struct unit *units;
	size_t n_units_open, units_capacity;
};

static uint32_t read_u32(const struct bytes *bytes, size_t position)
{
	uint32_t value;

	memcpy(&value, bytes->data + 4 * position, sizeof(value));
	return value;
}

// Returns the next section of that name, unpacked; size 0: there is none.
static struct bytes next_section(Elf *elf, const char *name, Elf_Scn **section)
{
	size_t strings;

	if (!elf || elf_getshdrstrndx(elf, &strings) != 0)
		return (struct bytes){0};
	while ((*section = elf_nextscn(elf, *section))) {
		GElf_Shdr header;
		const char *its_name = gelf_getshdr(*section, &header)
		                           ? elf_strptr(elf, strings, header.sh_name)
		                           : NULL;
		if (!its_name || strcmp(its_name, name) != 0)
			continue;
		if (header.sh_flags & SHF_COMPRESSED && elf_compress(*section, 0, 0) < 0)
			return (struct bytes){0};
		const Elf_Data *data = elf_rawdata(*section, NULL);
		return data && data->d_buf ? (struct bytes){data->d_buf, data->d_size}
		                           : (struct bytes){0};
	}
	return (struct bytes){0};
}

static struct bytes read_section(Elf *elf, const char *name)
{
	Elf_Scn *section = NULL;

	return next_section(elf, name, &section);
}

// Returns the first unit that is not a type's (7.5.1.1); size 0: there is none.
static struct bytes find_compile_unit(struct bytes info)
{
	for (size_t i = 0; i < MAX_TYPE_UNITS && info.size >= HEADER_BYTES; i++) {
		const bool is_wide = read_u32(&info, 0) == UINT32_MAX;
		const size_t head = is_wide ? 12 : 4;
		uint64_t length = read_u32(&info, 0);
		uint16_t version;

		if (is_wide)
			memcpy(&length, info.data + 4, sizeof(length));
		memcpy(&version, info.data + head, sizeof(version));
		if (length > info.size - head)
			break;
		const struct bytes unit = {info.data, head + length};
		if (version < 5 || info.data[head + sizeof(version)] == DW_UT_split_compile)
			return unit;
		info = (struct bytes){info.data + unit.size, info.size - unit.size};
	}
	return (struct bytes){0};
}

// Returns the unit of a .dwo file. Type units stand before it, or in sections of the same name
// (GCC).
static struct bytes read_unit(Elf *elf)
{
	Elf_Scn *section = NULL;
	struct bytes info, unit = {0};

	while (unit.size == 0 && (info = next_section(elf, ".debug_info.dwo", &section)).size > 0)
		unit = find_compile_unit(info);
	return unit;
}

// Version 2 is GNU's, of DWARF 4: 32 bits; version 5 has 16 bits and padding.
static bool read_index(struct split_package *package)
{
	const struct bytes *index = &package->index;

	if (index->size < 16)
		return false;
	package->version = read_u32(index, 0);
	package->n_columns = read_u32(index, 1);
	package->n_units = read_u32(index, 2);
	package->n_slots = read_u32(index, 3);
	const uint64_t words = 4 + 3 * (uint64_t)package->n_slots + package->n_columns +
	                       2 * (uint64_t)package->n_columns * package->n_units;
	return (package->version == 2 || package->version == 5) && package->n_columns > 0 &&
	       package->n_columns <= MAX_COLUMNS && package->n_slots > 0 &&
	       (package->n_slots & (package->n_slots - 1)) == 0 && words <= index->size / 4;
}

struct split_package *split_package_open(int fd)
{
	struct split_package *package = memory_alloc_zeroed(1, sizeof(*package));

	elf_version(EV_CURRENT);
	package->fd = fd;
	package->elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	package->index = read_section(package->elf, ".debug_cu_index");
	for (enum part part = 0; part <= PART_STR; part++) {
		_cleanup_free_ char *name = memory_printf("%s.dwo", names[part]);
		package->parts[part] = read_section(package->elf, name);
	}
	package->is_unit = package->index.size == 0 && package->parts[PART_INFO].size > 0;
	if (package->is_unit)
		package->parts[PART_INFO] = read_unit(package->elf);
	if (package->is_unit || read_index(package))
		return package;
	split_package_close(package);
	return NULL;
}

void split_package_close(struct split_package *package)
{
	if (!package)
		return;
	for (size_t i = 0; i < package->n_units_open; i++) {
		dwarf_end(package->units[i].dwarf);
		elf_end(package->units[i].elf);
		free(package->units[i].image);
	}
	free(package->units);
	elf_end(package->elf);
	if (package->fd >= 0)
		close(package->fd);
	free(package);
}

// Returns the row (from 1) of the unit with that id; 0: none. The table is hashed twice (7.3.5.3).
static uint32_t find_row(const struct split_package *package, uint64_t id)
{
	const uint32_t mask = package->n_slots - 1;
	const uint32_t step = ((id >> 32) & mask) | 1;
	uint32_t slot = id & mask;

	for (uint32_t i = 0; i < package->n_slots; i++, slot = (slot + step) & mask) {
		const uint32_t row =
		    read_u32(&package->index, 4 + 2 * (size_t)package->n_slots + slot);
		uint64_t its_id;
		memcpy(&its_id, package->index.data + 16 + 8 * (size_t)slot, sizeof(its_id));
		if (row == 0)
			return 0;
		if (its_id == id)
			return row <= package->n_units ? row : 0;
	}
	return 0;
}

// Returns the part for DW_SECT_* of a column; N_PARTS: it is not needed.
static enum part part_of_column(const struct split_package *package, uint32_t number)
{
	switch (number) {
	case 1:
		return PART_INFO;
	case 3:
		return PART_ABBREV;
	case 4:
		return PART_LINE;
	case 6:
		return PART_STR_OFFSETS;
	case 8: // in version 2 macros
		return package->version == 5 ? PART_RANGE_LISTS : N_PARTS;
	default:
		return N_PARTS;
	}
}

// Takes the unit's own part of the package's sections.
static bool slice(const struct split_package *package, uint32_t row, struct bytes ret[N_PARTS])
{
	const size_t columns = 4 + 3 * (size_t)package->n_slots;
	const size_t offsets = columns + package->n_columns;
	const size_t sizes = offsets + (size_t)package->n_columns * package->n_units;
	const size_t first = (size_t)(row - 1) * package->n_columns;

	for (uint32_t i = 0; i < package->n_columns; i++) {
		const enum part part =
		    part_of_column(package, read_u32(&package->index, columns + i));
		const uint32_t offset = read_u32(&package->index, offsets + first + i);
		const uint32_t size = read_u32(&package->index, sizes + first + i);
		if (part == N_PARTS)
			continue;
		if (offset > package->parts[part].size || size > package->parts[part].size - offset)
			return false;
		ret[part] = (struct bytes){package->parts[part].data + offset, size};
	}
	ret[PART_STR] = package->parts[PART_STR];
	return ret[PART_INFO].size > 0;
}

static bool find_parts(const struct split_package *package, uint64_t id, struct bytes ret[N_PARTS])
{
	if (package->is_unit) {
		memcpy(ret, package->parts, sizeof(package->parts));
		return true;
	}
	const uint32_t row = find_row(package, id);
	return row != 0 && slice(package, row, ret);
}

static struct image *make_image(void)
{
	struct image *image = memory_alloc_zeroed(1, sizeof(*image));

	image->header = (Elf64_Ehdr){
	    .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	    .e_type = ET_REL,
	    .e_machine = ARCH_NATIVE->elf_machine,
	    .e_version = EV_CURRENT,
	    .e_shoff = offsetof(struct image, sections),
	    .e_ehsize = sizeof(Elf64_Ehdr),
	    .e_shentsize = sizeof(Elf64_Shdr),
	    .e_shnum = N_PARTS + 2,
	    .e_shstrndx = NAMES_SECTION,
	};
	for (size_t i = 0; i < N_PARTS; i++) {
		strcpy(image->names[i + FIRST_SECTION], names[i]);
		image->sections[i + FIRST_SECTION] = (Elf64_Shdr){
		    .sh_name = (i + FIRST_SECTION) * NAME_SIZE,
		    .sh_type = SHT_PROGBITS,
		    .sh_size = 1, // to be replaced
		    .sh_addralign = 1,
		};
	}
	image->sections[NAMES_SECTION] = (Elf64_Shdr){
	    .sh_type = SHT_STRTAB,
	    .sh_offset = offsetof(struct image, names),
	    .sh_size = sizeof(image->names),
	    .sh_addralign = 1,
	};
	return image;
}

// Changes it without libelf's knowledge: what it has read of a section it gives to everyone who
// asks again.
static void put_part(Elf_Data *data, const struct bytes *part)
{
	if (!data)
		return;
	data->d_buf = (void *)part->data;
	data->d_size = part->size;
}

static void put_parts(Elf *elf, const struct bytes parts[N_PARTS])
{
	for (size_t i = 0; i < N_PARTS; i++) {
		Elf_Scn *section = elf_getscn(elf, i + FIRST_SECTION);
		put_part(elf_getdata(section, NULL), &parts[i]);
		put_part(elf_rawdata(section, NULL), &parts[i]);
	}
}

// Returns libdw's view of the unit; NULL: it cannot read it.
static Dwarf *open_unit(struct split_package *package, const struct bytes parts[N_PARTS])
{
	struct unit unit = {.image = make_image()};

	unit.elf = elf_memory((char *)unit.image, sizeof(*unit.image));
	if (unit.elf) {
		put_parts(unit.elf, parts);
		unit.dwarf = dwarf_begin_elf(unit.elf, DWARF_C_READ, NULL);
	}
	*array_push(package->units, package->n_units_open, package->units_capacity) = unit;
	return unit.dwarf;
}

static uint64_t number_attribute(Dwarf_Die *die, unsigned int name, unsigned int gnu_name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attribute) && !dwarf_attr(die, gnu_name, &attribute))
		return 0;
	return dwarf_formudata(&attribute, &value) == 0 ? value : 0;
}

// Returns the id of a split unit, which is in its header since version 5.
static uint64_t id_of(Dwarf_Die *die)
{
	uint64_t id = 0;
	uint8_t type = 0;

	if (dwarf_cu_info(die->cu, NULL, &type, NULL, NULL, &id, NULL, NULL) == 0 &&
	    type == DW_UT_split_compile && id != 0)
		return id;
	return number_attribute(die, DW_AT_GNU_dwo_id, DW_AT_GNU_dwo_id);
}

// Adds the program's sections that the unit refers to.
static void add_program_parts(Dwarf_Die *skeleton, struct bytes parts[N_PARTS])
{
	Elf *elf = dwarf_getelf(dwarf_cu_getdwarf(skeleton->cu));
	const uint64_t base = number_attribute(skeleton, DW_AT_addr_base, DW_AT_GNU_addr_base);
	const struct bytes addresses = read_section(elf, ".debug_addr");

	if (base < addresses.size)
		parts[PART_ADDR] = (struct bytes){addresses.data + base, addresses.size - base};
	parts[PART_RANGES] = read_section(elf, ".debug_ranges");
}

// Reads DW_FORM_rnglistx: an index into the table of offsets after the section's header (7.28),
// which has 8 more bytes with 64-bit DWARF. libdw does not tell.
static ptrdiff_t indexed_list(const struct split_base *base, const Dwarf_Attribute *attribute)
{
	const unsigned char *value = attribute->valp;
	const bool wide = base->range_lists_size >= 4 &&
	                  read_u32(&(struct bytes){base->range_lists, 4}, 0) == UINT32_MAX;
	const size_t header = wide ? 20 : 12, size = wide ? 8 : 4;
	uint64_t index = 0, offset = 0;

	for (unsigned int shift = 0; shift < 32; shift += 7) { // LEB128
		index |= (uint64_t)(*value & 0x7f) << shift;
		if (!(*value++ & 0x80))
			break;
	}
	const uint64_t position = header + index * size;
	if (position + size > base->range_lists_size)
		return 0;
	memcpy(&offset, base->range_lists + position, size);
	return offset < base->range_lists_size - header ? (ptrdiff_t)(header + offset) : 0;
}

ptrdiff_t split_package_range_list(const struct split_base *base, void *attribute)
{
	Dwarf_Word offset;

	if (dwarf_whatform(attribute) == DW_FORM_rnglistx)
		return indexed_list(base, attribute);
	if (dwarf_formudata(attribute, &offset) != 0 || offset > PTRDIFF_MAX - base->ranges_base)
		return 0;
	return (ptrdiff_t)(offset + base->ranges_base);
}

bool split_package_find(struct split_package *package, void *skeleton_die, void *ret_die,
                        struct split_base *ret_base)
{
	Dwarf_Die *skeleton = skeleton_die, die;
	struct bytes parts[N_PARTS] = {0};
	Dwarf_Addr low_pc = 0;
	uint64_t id = 0;
	uint8_t type = 0;
	Dwarf_CU *cu = NULL;

	if (dwarf_cu_info(skeleton->cu, NULL, &type, NULL, NULL, &id, NULL, NULL) != 0 ||
	    type != DW_UT_skeleton)
		return false;
	if (!find_parts(package, id, parts))
		return false;
	add_program_parts(skeleton, parts);
	Dwarf *dwarf = open_unit(package, parts);
	if (!dwarf || dwarf_get_units(dwarf, NULL, &cu, NULL, NULL, &die, NULL) != 0 ||
	    dwarf_tag(&die) != DW_TAG_compile_unit || (package->is_unit && id_of(&die) != id))
		return false;
	dwarf_lowpc(skeleton, &low_pc);
	*(Dwarf_Die *)ret_die = die;
	*ret_base = (struct split_base){
	    .detached = true,
	    .low_pc = low_pc,
	    .range_lists = parts[PART_RANGE_LISTS].data,
	    .range_lists_size = parts[PART_RANGE_LISTS].size,
	    .ranges_base = number_attribute(skeleton, DW_AT_GNU_ranges_base, DW_AT_GNU_ranges_base),
	};
	return true;
}
