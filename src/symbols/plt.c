// SPDX-License-Identifier: MIT
#include "plt.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "arch.h"
#include "elf_relocation.h"
#include "interval_map.h"
#include "memory.h"

enum {
	ENTRY_BYTES = 16,    // of an entry; those of .plt.got may have 8
	ENTRY_ALIGNMENT = 8, // in the section
	MAX_ENTRIES = 1 << 20,
	MAX_NAME_BYTES = 4096,
};

// Reads the sections; what it needs for that.
struct reading {
	struct plt *plt;
	Elf *elf;
	plt_name_of *name_of;
	const void *context;
};

// A slot of the global offset table and the function that it is bound to.
struct got_slot {
	uint64_t address;
	const char *name; // borrowed from the Elf, or from who knows it
};

struct plt {
	struct got_slot *slots; // sorted, while the entries are read
	size_t n_slots, slots_capacity;
	char **names;
	size_t n_names, names_capacity;
	struct interval_map map; // to positions in names
};

// Returns the function that the slot is bound to: a symbol's, or one that the function with the
// name chooses (an IFUNC, within the file).
static const char *name_of_slot(const struct reading *reading, const GElf_Shdr *symbols_header,
                                Elf_Data *symbols, const GElf_Rela *rela)
{
	const unsigned int type = GELF_R_TYPE(rela->r_info);
	const size_t index = GELF_R_SYM(rela->r_info);
	GElf_Sym sym;

	if (elf_relocation_chooses(type))
		return reading->name_of(reading->context, (uint64_t)rela->r_addend);
	if (!elf_relocation_binds(type) || !symbols || index > INT32_MAX ||
	    !gelf_getsym(symbols, (int)index, &sym))
		return NULL;
	return elf_strptr(reading->elf, symbols_header->sh_link, sym.st_name);
}

static void read_relocations(const struct reading *reading, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	GElf_Shdr mem;
	Elf_Scn *symbols_scn = elf_getscn(reading->elf, shdr->sh_link);
	GElf_Shdr *symbols_shdr = gelf_getshdr(symbols_scn, &mem);
	struct plt *plt = reading->plt;
	Elf_Data *data = elf_getdata(scn, NULL), *symbols = NULL;

	if (!data || shdr->sh_entsize == 0)
		return;
	if (symbols_shdr && symbols_shdr->sh_type == SHT_DYNSYM)
		symbols = elf_getdata(symbols_scn, NULL);
	size_t count = shdr->sh_size / shdr->sh_entsize;
	for (size_t i = 0; i < count && i < INT32_MAX; i++) {
		GElf_Rela rela;

		if (!gelf_getrela(data, (int)i, &rela))
			return;
		const char *name = name_of_slot(reading, symbols_shdr, symbols, &rela);
		if (name && name[0] && plt->n_slots < MAX_ENTRIES)
			*array_push(plt->slots, plt->n_slots, plt->slots_capacity) =
			    (struct got_slot){.address = rela.r_offset, .name = name};
	}
}

static int compare_slots(const void *a, const void *b)
{
	const struct got_slot *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

// Without the version that linkers append.
static size_t plain_length(const char *name)
{
	const size_t length = strnlen(name, MAX_NAME_BYTES);
	const char *version = memchr(name, '@', length);

	return version ? (size_t)(version - name) : length;
}

static void add_entry(struct plt *plt, uint64_t address, uint64_t slot_address)
{
	const struct got_slot key = {.address = slot_address};
	const struct got_slot *slot =
	    plt->n_slots ? bsearch(&key, plt->slots, plt->n_slots, sizeof(key), compare_slots)
	                 : NULL;

	if (!slot || plt->n_names >= MAX_ENTRIES)
		return;
	interval_map_add(&plt->map, address, address + ENTRY_BYTES, (uint32_t)plt->n_names, 0);
	*array_push(plt->names, plt->n_names, plt->names_capacity) =
	    memory_printf("%.*s@plt", (int)plain_length(slot->name), slot->name);
}

static void read_entries(struct plt *plt, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	Elf_Data *data = elf_getdata(scn, NULL);

	if (!data || !data->d_buf || shdr->sh_addr > UINT64_MAX - data->d_size - ENTRY_BYTES)
		return;
	for (size_t at = 0; at < data->d_size; at += ENTRY_ALIGNMENT) {
		uint64_t address = shdr->sh_addr + at;
		const uint8_t *code = (const uint8_t *)data->d_buf + at;
		uint64_t slot = ARCH_NATIVE->plt_slot(code, data->d_size - at, address);

		if (slot)
			add_entry(plt, address, slot);
	}
}

static bool is_plt_name(const char *name)
{
	return name && (strcmp(name, ".plt") == 0 || strcmp(name, ".plt.sec") == 0 ||
	                strcmp(name, ".plt.got") == 0);
}

static void read_sections(const struct reading *reading, bool relocations)
{
	Elf *elf = reading->elf;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return;
	for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
		GElf_Shdr mem, *shdr = gelf_getshdr(scn, &mem);

		if (!shdr || (shdr->sh_flags & SHF_COMPRESSED))
			continue;
		if (relocations && shdr->sh_type == SHT_RELA && (shdr->sh_flags & SHF_ALLOC))
			read_relocations(reading, scn, shdr);
		else if (!relocations && shdr->sh_type == SHT_PROGBITS &&
		         is_plt_name(elf_strptr(elf, names, shdr->sh_name)))
			read_entries(reading->plt, scn, shdr);
	}
}

struct plt *plt_create(Dwfl_Module *module, plt_name_of *name_of, const void *context)
{
	struct plt *plt = memory_alloc_zeroed(1, sizeof(*plt));
	GElf_Addr bias;
	GElf_Ehdr mem;
	Elf *elf = dwfl_module_getelf(module, &bias);
	GElf_Ehdr *ehdr = elf ? gelf_getehdr(elf, &mem) : NULL;

	if (!ehdr || ehdr->e_machine != ARCH_NATIVE->elf_machine)
		return plt;
	const struct reading reading = {plt, elf, name_of, context};
	read_sections(&reading, true);
	if (plt->n_slots)
		qsort(plt->slots, plt->n_slots, sizeof(*plt->slots), compare_slots);
	read_sections(&reading, false);
	interval_map_build(&plt->map);
	free(plt->slots);
	plt->slots = NULL;
	return plt;
}

void plt_destroy(struct plt *plt)
{
	if (!plt)
		return;
	for (size_t i = 0; i < plt->n_names; i++)
		free(plt->names[i]);
	free(plt->names);
	free(plt->slots);
	interval_map_deinit(&plt->map);
	free(plt);
}

const char *plt_find(const struct plt *plt, uint64_t address)
{
	uint32_t id = interval_map_find(&plt->map, address);

	return id != INTERVAL_NONE ? plt->names[id] : NULL;
}
