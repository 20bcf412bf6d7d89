// SPDX-License-Identifier: MIT
#include "function_range.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "memory.h"
#include "module.h"
#include "order.h"
#include "symbol_table.h"

enum { MAX_RANGES = 512 }; // that are kept, the last ones

// CPU time for looking through a module's symbols, in all.
#define LOOK_NS (NS_PER_SECOND / 2)

struct function_ranges {
	const Elf64_Sym *symbols; // borrowed from the Elf, as are the names
	size_t n_symbols;
	Elf *elf;
	size_t names; // the section that has them
	int64_t left_ns;
	struct function_range known[MAX_RANGES];
	size_t n_known, next;
};

static void take_section(struct function_ranges *ranges, Elf_Scn *section, const GElf_Shdr *header)
{
	const Elf_Data *data = elf_getdata(section, NULL);

	if (!data || !data->d_buf)
		return;
	ranges->symbols = data->d_buf;
	ranges->n_symbols = data->d_size / sizeof(*ranges->symbols);
	ranges->names = header->sh_link;
}

// Takes the whole table; where it was stripped, the one of the names that are seen from outside.
static void find_symbols(struct function_ranges *ranges)
{
	GElf_Shdr header;

	if (gelf_getclass(ranges->elf) != ELFCLASS64)
		return;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(ranges->elf, section));) {
		if (!gelf_getshdr(section, &header))
			continue;
		if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM)
			take_section(ranges, section, &header);
		if (header.sh_type == SHT_SYMTAB)
			return;
	}
}

static struct function_ranges *ranges_of(struct module *module)
{
	GElf_Addr bias;

	if (module->function_ranges)
		return module->function_ranges;
	struct function_ranges *ranges = memory_alloc_zeroed(1, sizeof(*ranges));
	ranges->left_ns = LOOK_NS;
	module->function_ranges = ranges;
	Dwfl_Module *dwfl_module = module_dwfl(module);
	ranges->elf = dwfl_module ? dwfl_module_getelf(dwfl_module, &bias) : NULL;
	if (ranges->elf)
		find_symbols(ranges);
	return ranges;
}

void function_ranges_destroy(struct function_ranges *ranges)
{
	free(ranges);
}

static const char *name_of(const struct function_ranges *ranges, const Elf64_Sym *symbol)
{
	const char *name = elf_strptr(ranges->elf, ranges->names, symbol->st_name);

	return name ? name : "";
}

// Functions have no labels' names: only those of other symbols are looked at.
static bool is_code(const struct function_ranges *ranges, const Elf64_Sym *symbol)
{
	const unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
		return false;
	return type == STT_FUNC || type == STT_GNU_IFUNC ||
	       (type == STT_NOTYPE && !symbol_table_is_label(name_of(ranges, symbol)));
}

// What of the table matters for one address.
struct look {
	uint64_t address;
	const Elf64_Sym *holding; // the innermost symbol whose size holds it; NULL: none
	uint64_t below, above;    // the nearest symbols' starts
	uint64_t ended;           // the last end below it
	bool is_unsized;          // the symbol at `below`
};

static void look_at(struct look *look, const Elf64_Sym *symbol)
{
	const uint64_t start = symbol->st_value, end = start + symbol->st_size;

	if (start > look->address) {
		look->above = start < look->above ? start : look->above;
		return;
	}
	if (start > look->below)
		look->is_unsized = symbol->st_size == 0;
	look->below = start > look->below ? start : look->below;
	if (end > look->address && (!look->holding || start >= look->holding->st_value))
		look->holding = symbol;
	else if (end <= look->address && end > look->ended)
		look->ended = end;
}

// Returns the range in which the same holds as at the address. A symbol without a size goes up to
// the next one.
static struct function_range answer(const struct function_ranges *ranges, const struct look *look)
{
	const Elf64_Sym *holding = look->holding;
	struct function_range range = {.start = look->below, .end = look->above};

	if (!holding) {
		range.symbol = look->is_unsized ? look->below : 0;
		if (!look->is_unsized)
			range.start = order_max(look->below, look->ended);
		return range;
	}
	range.end = order_min(range.end, holding->st_value + holding->st_size);
	range.symbol = holding->st_value;
	// What compilers split off a function (f.cold) begins in the middle of it.
	if (ELF64_ST_TYPE(holding->st_info) != STT_NOTYPE &&
	    !strstr(name_of(ranges, holding), ".cold"))
		range.function = holding->st_value;
	return range;
}

static struct function_range look_up(struct function_ranges *ranges, uint64_t address)
{
	const int64_t start_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	struct look look = {.address = address, .above = UINT64_MAX};

	for (size_t i = 1; i < ranges->n_symbols; i++)
		if (is_code(ranges, &ranges->symbols[i]))
			look_at(&look, &ranges->symbols[i]);
	ranges->left_ns -= clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	return answer(ranges, &look);
}

struct function_range function_range_find(struct module *module, uint64_t address)
{
	struct function_ranges *ranges = ranges_of(module);

	for (size_t i = 0; i < ranges->n_known; i++)
		if (address - ranges->known[i].start <
		    ranges->known[i].end - ranges->known[i].start)
			return ranges->known[i];
	if (ranges->left_ns <= 0)
		return (struct function_range){.start = address, .end = address + 1};
	struct function_range *range = &ranges->known[ranges->next++ % MAX_RANGES];
	ranges->n_known = order_min(ranges->next, MAX_RANGES);
	*range = look_up(ranges, address);
	return *range;
}
