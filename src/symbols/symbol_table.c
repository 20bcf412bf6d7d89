// SPDX-License-Identifier: MIT
#include "symbol_table.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "interval_map.h"
#include "memory.h"
#include "plt.h"

// An address range that holds code: an executable section, or segment where the sections are
// stripped.
struct code_range {
	uint64_t start, end;
};

struct symbol {
	const char *name;
	uint64_t start;
	uint64_t size;        // 0: up to the next symbol
	uint32_t name_length; // as far as it counts for comparing, without a version
	uint32_t underscores; // in front
	uint8_t binding_rank;
	bool is_function;
};

struct symbol_table {
	struct code_range *code; // sorted, may overlap in hostile files only
	size_t n_code, code_capacity;
	struct symbol *symbols;
	size_t n_symbols, symbols_capacity;
	bool has_local; // symbols, which stripping removes first
	struct plt *plt;
	struct interval_map map; // to positions in symbols
};

// How much of a name is looked at to choose between two: a hostile table can give each of a
// million symbols the same name of megabytes.
enum {
	MAX_COMPARED_BYTES = 1024,
	MAX_ALIASES = 64, // of one address; fork of glibc has 7
};

// Which symbol wins an address that several hold.
enum { PRIORITY_UNSIZED, PRIORITY_SIZED };

static void add_code(struct symbol_table *table, uint64_t start, uint64_t size)
{
	if (size == 0 || start > UINT64_MAX - size)
		return;
	*array_push(table->code, table->n_code, table->code_capacity) =
	    (struct code_range){.start = start, .end = start + size};
}

static void add_code_sections(struct symbol_table *table, Elf *elf)
{
	for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
		GElf_Shdr mem, *shdr = gelf_getshdr(scn, &mem);

		if (shdr && (shdr->sh_flags & SHF_EXECINSTR) && (shdr->sh_flags & SHF_ALLOC))
			add_code(table, shdr->sh_addr, shdr->sh_size);
	}
}

static void add_code_segments(struct symbol_table *table, Elf *elf)
{
	size_t count;

	if (elf_getphdrnum(elf, &count) != 0)
		return;
	for (size_t i = 0; i < count && i <= INT32_MAX; i++) {
		GElf_Phdr mem, *phdr = gelf_getphdr(elf, (int)i, &mem);

		if (phdr && phdr->p_type == PT_LOAD && (phdr->p_flags & PF_X))
			add_code(table, phdr->p_vaddr, phdr->p_memsz);
	}
}

static int compare_code(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

static void find_code(struct symbol_table *table, Dwfl_Module *module)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);

	if (!elf)
		return;
	add_code_sections(table, elf);
	if (table->n_code == 0)
		add_code_segments(table, elf);
	if (table->n_code)
		qsort(table->code, table->n_code, sizeof(*table->code), compare_code);
}

// Returns the code range that holds the address, or NULL.
static const struct code_range *code_at(const struct symbol_table *table, uint64_t address)
{
	size_t low = 0, high = table->n_code;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->code[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address >= table->code[low - 1].end)
		return NULL;
	return &table->code[low - 1];
}

static bool is_code_type(unsigned int type)
{
	return type == STT_FUNC || type == STT_NOTYPE || type == STT_GNU_IFUNC;
}

static uint8_t binding_rank(unsigned int binding)
{
	switch (binding) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		return 2;
	case STB_WEAK:
		return 1;
	default:
		return 0;
	}
}

// True for the mapping symbols of ARM and RISC-V ($x, $d.1). Swift's functions begin with "$s".
static bool is_mapping_symbol(const char *name)
{
	return name[0] == '$' && name[1] != '\0' && strchr("adtx", name[1]) &&
	       (name[2] == '\0' || name[2] == '.');
}

bool symbol_table_is_label(const char *name)
{
	return name[0] == '\0' || is_mapping_symbol(name) || (name[0] == '.' && name[1] == 'L');
}

static uint32_t underscores(const char *name)
{
	uint32_t count = 0;

	while (count < MAX_COMPARED_BYTES && name[count] == '_')
		count++;
	return count;
}

// Linkers append the version in .symtab: pthread_cond_wait@@GLIBC_2.3.2.
static uint32_t plain_length(const char *name)
{
	const size_t length = strnlen(name, MAX_COMPARED_BYTES);
	const char *version = memchr(name, '@', length);

	return (uint32_t)(version ? version - name : (ptrdiff_t)length);
}

static void add_symbol(struct symbol_table *table, const char *name, const GElf_Sym *sym,
                       uint64_t address)
{
	unsigned int type = GELF_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || !is_code_type(type) || symbol_table_is_label(name))
		return;
	const struct code_range *code = code_at(table, address);
	if (!code)
		return;
	uint64_t room = code->end - address;
	table->has_local |= GELF_ST_BIND(sym->st_info) == STB_LOCAL;
	*array_push(table->symbols, table->n_symbols, table->symbols_capacity) = (struct symbol){
	    .name = name,
	    .start = address,
	    .size = sym->st_size < room ? sym->st_size : room,
	    .name_length = plain_length(name),
	    .underscores = underscores(name),
	    .binding_rank = binding_rank(GELF_ST_BIND(sym->st_info)),
	    .is_function = type != STT_NOTYPE,
	};
}

static void read_symbols(struct symbol_table *table, Dwfl_Module *module)
{
	int count = dwfl_module_getsymtab(module);

	for (int i = 1; i < count; i++) {
		GElf_Sym sym;
		GElf_Addr address;
		const char *name =
		    dwfl_module_getsym_info(module, i, &sym, &address, NULL, NULL, NULL);
		if (name)
			add_symbol(table, name, &sym, address);
	}
}

static bool is_exported(const struct symbol *symbol)
{
	return symbol->binding_rank > 0;
}

// Sorts by address, and the best of several at one address last, because the map prefers what is
// added last.
static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (is_exported(x) != is_exported(y))
		return is_exported(y) ? -1 : 1;
	if (x->is_function != y->is_function)
		return x->is_function ? 1 : -1;
	if (x->underscores != y->underscores)
		return x->underscores > y->underscores ? -1 : 1;
	if (x->binding_rank != y->binding_rank)
		return x->binding_rank < y->binding_rank ? -1 : 1;
	if (x->name_length != y->name_length)
		return x->name_length > y->name_length ? -1 : 1;
	int order = strncmp(y->name, x->name, MAX_COMPARED_BYTES);
	return order ? order : (x->size > y->size) - (x->size < y->size);
}

static void build_map(struct symbol_table *table)
{
	uint64_t next = UINT64_MAX; // the start of the next symbol at a higher address

	if (table->n_symbols == 0)
		return;
	qsort(table->symbols, table->n_symbols, sizeof(*table->symbols), compare_symbols);
	uint64_t *limits = memory_alloc(table->n_symbols * sizeof(*limits));
	for (size_t i = table->n_symbols; i-- > 0;) {
		uint64_t start = table->symbols[i].start;

		if (i + 1 < table->n_symbols && table->symbols[i + 1].start != start)
			next = table->symbols[i + 1].start;
		limits[i] = next;
	}
	for (size_t i = 0; i < table->n_symbols && i < INTERVAL_NONE; i++) {
		const struct symbol *symbol = &table->symbols[i];
		uint64_t end = symbol->start + symbol->size;
		uint32_t priority = symbol->size ? PRIORITY_SIZED : PRIORITY_UNSIZED;

		if (symbol->size == 0) {
			end = code_at(table, symbol->start)->end;
			end = limits[i] < end ? limits[i] : end;
		}
		interval_map_add(&table->map, symbol->start, end, (uint32_t)i, priority);
	}
	free(limits);
	interval_map_build(&table->map);
}

// Returns the name of the symbol that begins at the address; NULL: none does.
static const char *name_at(const void *context, uint64_t address)
{
	const struct symbol_table *table = context;
	const uint32_t id = interval_map_find(&table->map, address);

	return id != INTERVAL_NONE && table->symbols[id].start == address ? table->symbols[id].name
	                                                                  : NULL;
}

struct symbol_table *symbol_table_create(Dwfl_Module *module)
{
	struct symbol_table *table = memory_alloc_zeroed(1, sizeof(*table));

	find_code(table, module);
	read_symbols(table, module);
	build_map(table);
	table->plt = plt_create(module, name_at, table);
	return table;
}

static bool find_in_section(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *name,
                            unsigned int type, uint64_t *ret)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	for (int i = 1; data && gelf_getsym(data, i, &symbol); i++) {
		if (GELF_ST_TYPE(symbol.st_info) != type || symbol.st_shndx == SHN_UNDEF)
			continue;
		const char *found = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (found && strcmp(found, name) == 0) {
			*ret = symbol.st_value;
			return true;
		}
	}
	return false;
}

bool symbol_table_find_named(Dwfl_Module *module, const char *name, unsigned int type,
                             uint64_t *ret)
{
	GElf_Shdr header;
	GElf_Addr bias;

	Elf *elf = module ? dwfl_module_getelf(module, &bias) : NULL;
	for (Elf_Scn *section = NULL; elf && (section = elf_nextscn(elf, section));)
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB) &&
		    find_in_section(elf, section, &header, name, type, ret))
			return true;
	return false;
}

void symbol_table_destroy(struct symbol_table *table)
{
	if (!table)
		return;
	plt_destroy(table->plt);
	interval_map_deinit(&table->map);
	free(table->symbols);
	free(table->code);
	free(table);
}

const char *symbol_table_find(const struct symbol_table *table, uint64_t address)
{
	uint32_t id = interval_map_find(&table->map, address);

	if (id != INTERVAL_NONE)
		return table->symbols[id].name;
	return plt_find(table->plt, address);
}

bool symbol_table_is_unsized(const struct symbol_table *table, uint64_t address,
                             uint64_t *ret_start)
{
	const uint32_t id = interval_map_find(&table->map, address);

	if (id == INTERVAL_NONE || table->symbols[id].size != 0)
		return false;
	*ret_start = table->symbols[id].start;
	return true;
}

bool symbol_table_is_stripped(const struct symbol_table *table)
{
	return !table->has_local;
}

const char *symbol_table_find_better(const struct symbol_table *table, uint64_t address,
                                     const char *name)
{
	const uint32_t id = interval_map_find(&table->map, address);
	const uint32_t length = plain_length(name);

	if (id == INTERVAL_NONE)
		return NULL;
	const struct symbol *best = &table->symbols[id], *first = table->symbols;
	for (const struct symbol *other = best; other-- > first && best - other <= MAX_ALIASES;) {
		if (other->start != best->start)
			return NULL;
		if (other->name_length != length || memcmp(other->name, name, length) != 0)
			continue;
		return is_exported(best) > is_exported(other) ||
		               best->underscores < other->underscores
		           ? best->name
		           : NULL;
	}
	return NULL;
}

const char *symbol_table_find_fitting(const struct symbol_table *table,
                                      bool (*fits)(const char *name, const char *wanted),
                                      const char *wanted)
{
	for (size_t i = 0; i < table->n_symbols; i++)
		if (fits(table->symbols[i].name, wanted))
			return table->symbols[i].name;
	return NULL;
}
