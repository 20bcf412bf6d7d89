// SPDX-License-Identifier: MIT
#include "gopclntab.h"

#include <endian.h>
#include <string.h>

#include "arch.h"
#include "dwarf_index.h"
#include "elf_relocation.h"
#include "memory.h"
#include "module.h"
#include "rule.h"

// runtime/symtab.go, pcHeader.
#define MAGIC_1_16 0xfffffffau
#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u

enum {
	WORD = 8, // of 64-bit programs

	// Fields of struct moduledata, in words. Those before gofunc come and go: it was the 38th
	// in 1.18, the 40th in 1.20 and the 39th in 1.27.
	MODULE_MINPC = 20,
	MODULE_TEXT = 22,
	MODULE_FIRST_GOFUNC = 36,
	MODULE_LAST_GOFUNC = 44,
	MAX_TREES = 32,      // of inlined calls, that have to fit gofunc
	MAX_SEARCHED = 4096, // functions, for these

	PCDATA_INLINE_INDEX = 2, // internal/abi/symtab.go
	FUNCDATA_INLINE_TREE = 3,

	RELA_BYTES = 24, // Elf64_Rela

	MAX_INLINED = DWARF_MAX_LEVELS - 1,

	MAX_HEADERS = 8, // what looks like one, among other data
};

// Steps through pc-value tables and lists, of all look-ups together: some seconds. A function of a
// real program takes some thousands, and half of them on the average.
#define MAX_STEPS (INT64_C(1) << 29)

struct bytes {
	const uint8_t *start;
	size_t size;
};

struct gopclntab {
	struct bytes table;
	struct bytes gofunc;  // what functions' funcdata is relative to; empty: not known
	uint64_t text;        // the address that entries are relative to
	uint64_t module_data; // the address of struct moduledata; 0: not known
	uint64_t n_functions;
	uint64_t names, units, files, values, functions; // offsets in the table
	bool has_offsets;                                // entries are offsets from text (1.18)
	bool has_start_lines;                            // and functions know their lines (1.20)
	int64_t steps_left;
};

// A function's _func (runtime/runtime2.go), and where it is.
struct go_function {
	uint64_t entry; // an address
	uint64_t at;    // its offset in the table
	uint64_t end;   // of its fixed part, likewise
	uint32_t name, pcsp, pcfile, pcln, n_pcdata, unit, start_line;
	uint8_t special, flag, n_funcdata;
};

static bool read_u32(const struct bytes *bytes, uint64_t at, uint32_t *ret)
{
	if (at >= bytes->size || bytes->size - at < sizeof(*ret))
		return false;
	memcpy(ret, bytes->start + at, sizeof(*ret));
	*ret = le32toh(*ret);
	return true;
}

static bool read_word(const struct bytes *bytes, uint64_t at, uint64_t *ret)
{
	if (at >= bytes->size || bytes->size - at < sizeof(*ret))
		return false;
	memcpy(ret, bytes->start + at, sizeof(*ret));
	*ret = le64toh(*ret);
	return true;
}

static const char *read_string(const struct bytes *bytes, uint64_t at)
{
	if (at >= bytes->size || !memchr(bytes->start + at, '\0', bytes->size - at))
		return NULL;
	return (const char *)bytes->start + at;
}

static struct bytes section(struct module *module, const char *name, uint64_t *ret_address)
{
	struct bytes bytes = {0};

	if (module_find_section(module, name, ret_address))
		bytes.start = module_data(module, *ret_address, &bytes.size);
	return bytes;
}

// Reads the pointer at the address as it is once the program is loaded, at bias 0.
static bool read_pointer(struct module *module, const struct bytes *relocations, uint64_t address,
                         uint64_t *ret)
{
	uint64_t place, info;
	struct bytes data;

	for (size_t at = 0; read_word(relocations, at, &place); at += RELA_BYTES)
		if (place == address && read_word(relocations, at + 8, &info) &&
		    elf_relocation_moves((uint32_t)info))
			return read_word(relocations, at + 16, ret);
	data.start = module_data(module, address, &data.size);
	return data.start && read_word(&data, 0, ret);
}

// Finds where the first pointer to `target` is, in the sections that may hold struct moduledata.
// False if there is none.
static bool find_pointer(struct module *module, const struct bytes *relocations, uint64_t target,
                         uint64_t *ret)
{
	static const char *const names[] = {".go.module", ".noptrdata", ".data", ".data.rel.ro"};
	uint64_t value, start;

	for (size_t at = 0; read_word(relocations, at + 16, &value); at += RELA_BYTES)
		if (value == target)
			return read_word(relocations, at, ret);
	for (size_t i = 0; i < array_size(names); i++) {
		const struct bytes data = section(module, names[i], &start);
		for (size_t at = 0; read_word(&data, at, &value); at += WORD) {
			*ret = start + at;
			if (value == target)
				return true;
		}
	}
	return false;
}

static struct bytes relocations_of(struct module *module)
{
	uint64_t address;
	const struct bytes bytes = section(module, ".rela.dyn", &address); // of the system's linker

	return bytes.start ? bytes : section(module, ".rela", &address); // of Go's own
}

// Reads what only struct moduledata knows: where the code begins. (The header has it until 1.25.)
static void read_module_data(struct gopclntab *table, struct module *module, uint64_t address)
{
	const struct bytes relocations = relocations_of(module);
	uint64_t data, text, first, entry = 0;
	uint32_t offset = 0;

	if (!find_pointer(module, &relocations, address, &data) ||
	    !read_pointer(module, &relocations, data + MODULE_TEXT * WORD, &text) ||
	    !read_pointer(module, &relocations, data + MODULE_MINPC * WORD, &first))
		return;
	if (table->has_offsets && read_u32(&table->table, table->functions, &offset))
		entry = text + offset;
	else
		read_word(&table->table, table->functions, &entry);
	if (entry != first || (table->text && table->text != text))
		return; // it is something else
	table->text = text;
	table->module_data = data;
}

static bool read_header(struct gopclntab *table, struct module *module, uint64_t address)
{
	const struct bytes *bytes = &table->table;
	uint64_t *const offsets[] = {&table->names, &table->units, &table->files, &table->values,
	                             &table->functions};
	uint32_t magic, sizes;
	uint64_t at = 3 * WORD;

	// Two zeros, the smallest instruction's size (1 for x86), a pointer's size.
	if (!read_u32(bytes, 0, &magic) || !read_u32(bytes, 4, &sizes) ||
	    sizes != (WORD << 24 | 1 << 16) || !read_word(bytes, 8, &table->n_functions))
		return false;
	// In a section of that name, another magic number is a newer version's, or a random one
	// (garble): if the rest fits, it is the newest known format.
	table->has_offsets = magic != MAGIC_1_16;
	table->has_start_lines = magic != MAGIC_1_16 && magic != MAGIC_1_18;
	if (table->has_offsets) {
		const struct bytes relocations = relocations_of(module);
		if (!read_pointer(module, &relocations, address + at, &table->text))
			return false;
		at += WORD;
	}
	for (size_t i = 0; i < array_size(offsets); i++)
		if (!read_word(bytes, at + i * WORD, offsets[i]) || *offsets[i] >= bytes->size)
			return false;
	return table->n_functions < bytes->size;
}

static bool read_section(struct gopclntab *table, struct module *module, const char *name,
                         uint64_t *ret_address)
{
	table->table = section(module, name, ret_address);
	return table->table.start && read_header(table, module, *ret_address);
}

// Finds the table of Go 1.19 if the system's linker has made a library or a PIE: it is among other
// data, between runtime.pclntab and runtime.epclntab (cmd/link/internal/ld/pcln.go), which a
// stripped program lacks.
static bool find_header(struct gopclntab *table, struct module *module, uint64_t *ret_address)
{
	uint64_t start;
	uint32_t magic;
	const struct bytes data = section(module, ".data.rel.ro", &start);

	for (size_t at = 0, n = 0; n < MAX_HEADERS && read_u32(&data, at, &magic); at += WORD) {
		if (magic != MAGIC_1_16 && magic != MAGIC_1_18 && magic != MAGIC_1_20)
			continue;
		n++;
		*table = (struct gopclntab){
		    .table = {data.start + at, data.size - at},
		    .steps_left = MAX_STEPS,
		};
		*ret_address = start + at;
		if (read_header(table, module, *ret_address))
			return true;
	}
	return false;
}

// Reads entry i of the function table: an address and an offset from the table's start. There is
// one more than there are functions: the last has the end of the code.
static bool read_entry(const struct gopclntab *table, uint64_t i, uint64_t *ret_address,
                       uint64_t *ret_offset)
{
	uint32_t address, offset;

	if (!table->has_offsets)
		return read_word(&table->table, table->functions + i * 16, ret_address) &&
		       read_word(&table->table, table->functions + i * 16 + 8, ret_offset);
	if (!read_u32(&table->table, table->functions + i * 8, &address) ||
	    !read_u32(&table->table, table->functions + i * 8 + 4, &offset))
		return false;
	*ret_address = table->text + address;
	*ret_offset = offset;
	return true;
}

static bool read_function(const struct gopclntab *table, uint64_t at, struct go_function *ret)
{
	const struct bytes *bytes = &table->table;
	// entry, name, args, deferreturn, pcsp, pcfile, pcln, npcdata, cuOffset, startLine, flags
	const uint64_t fields = at + (table->has_offsets ? 4 : 8);
	const uint64_t last = fields + (table->has_start_lines ? 36 : 32);

	*ret = (struct go_function){.at = at, .end = last + 4};
	if (at >= bytes->size || bytes->size - at < 48)
		return false;
	read_u32(bytes, fields, &ret->name);
	read_u32(bytes, fields + 12, &ret->pcsp);
	read_u32(bytes, fields + 16, &ret->pcfile);
	read_u32(bytes, fields + 20, &ret->pcln);
	read_u32(bytes, fields + 24, &ret->n_pcdata);
	read_u32(bytes, fields + 28, &ret->unit);
	if (table->has_start_lines)
		read_u32(bytes, fields + 32, &ret->start_line);
	ret->flag = table->has_offsets ? bytes->start[last + 1] : 0;
	ret->special = bytes->start[last];
	ret->n_funcdata = bytes->start[last + 3];
	return true;
}

// Counts the functions that begin at the address or below.
static bool count_functions(const struct gopclntab *table, uint64_t address, uint64_t *ret)
{
	uint64_t low = 0, high = table->n_functions, entry, offset;

	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		if (!read_entry(table, middle, &entry, &offset))
			return false;
		if (entry <= address)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low;
	return true;
}

static bool find_function(const struct gopclntab *table, uint64_t address, struct go_function *ret)
{
	uint64_t n, entry, offset;

	if (!count_functions(table, address, &n) || n == 0 ||
	    !read_entry(table, n, &entry, &offset) || address >= entry ||
	    !read_entry(table, n - 1, &entry, &offset) ||
	    !read_function(table, table->functions + offset, ret))
		return false;
	ret->entry = entry;
	return true;
}

static bool read_varint(const struct bytes *bytes, uint64_t *at, uint32_t *ret)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; shift < 35 && *at < bytes->size; shift += 7) {
		const uint8_t byte = bytes->start[(*at)++];
		value |= (uint32_t)(byte & 0x7f) << (shift < 32 ? shift : 31);
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

// Finds the value of a function's pc-value table at the address (runtime/symtab.go, step): pairs of
// a difference of the value (zigzag) and of the pc, beginning at -1 and the entry.
static bool find_value(struct gopclntab *table, const struct go_function *function, uint32_t offset,
                       uint64_t address, int32_t *ret)
{
	uint64_t at = table->values + offset, pc = function->entry;
	uint32_t value = UINT32_MAX, change, advance;

	if (offset == 0)
		return false; // there is no table
	for (bool first = true; table->steps_left-- > 0; first = false) {
		if (!read_varint(&table->table, &at, &change) || (change == 0 && !first) ||
		    !read_varint(&table->table, &at, &advance))
			return false;
		value += change >> 1 ^ -(change & 1);
		pc += advance;
		if (address < pc) {
			*ret = (int32_t)value;
			return true;
		}
	}
	return false;
}

static const char *file_at(struct gopclntab *table, const struct go_function *function,
                           uint64_t address)
{
	int32_t number;
	uint32_t offset;

	if (!find_value(table, function, function->pcfile, address, &number) || number < 0 ||
	    !read_u32(&table->table, table->units + 4 * ((uint64_t)function->unit + number),
	              &offset))
		return NULL;
	return read_string(&table->table, table->files + offset);
}

static struct dwarf_level level_at(struct gopclntab *table, const struct go_function *function,
                                   uint64_t address, uint32_t name, uint32_t start_line)
{
	int32_t line;

	return (struct dwarf_level){
	    .name = read_string(&table->table, table->names + name),
	    .file = file_at(table, function, address),
	    .line =
	        find_value(table, function, function->pcln, address, &line) && line > 0 ? line : 0,
	    .start_line = start_line,
	};
}

// Returns where the offset of its tree of inlined calls is.
static uint64_t funcdata_at(const struct go_function *function)
{
	return function->end + 4 * (uint64_t)function->n_pcdata + 4 * FUNCDATA_INLINE_TREE;
}

struct inlined_call {
	uint32_t name, parent_pc, start_line;
};

// Finds the inlined call that the address belongs to (runtime/symtabinl.go; before 1.20: parent and
// funcID, file, line, func_, parentPc).
static bool find_inlined(struct gopclntab *table, const struct go_function *function,
                         uint64_t address, struct inlined_call *ret)
{
	const uint64_t pcdata = function->end + 4 * PCDATA_INLINE_INDEX;
	uint32_t indices, tree;
	int32_t index;

	if (!table->gofunc.start || function->n_pcdata <= PCDATA_INLINE_INDEX ||
	    function->n_funcdata <= FUNCDATA_INLINE_TREE ||
	    !read_u32(&table->table, pcdata, &indices) ||
	    !read_u32(&table->table, funcdata_at(function), &tree) || tree == UINT32_MAX ||
	    !find_value(table, function, indices, address, &index) || index < 0)
		return false;
	*ret = (struct inlined_call){0};
	if (!table->has_start_lines) {
		const uint64_t at = tree + 20 * (uint64_t)index;
		return read_u32(&table->gofunc, at + 12, &ret->name) &&
		       read_u32(&table->gofunc, at + 16, &ret->parent_pc);
	}
	const uint64_t at = tree + 16 * (uint64_t)index;
	return read_u32(&table->gofunc, at + 4, &ret->name) &&
	       read_u32(&table->gofunc, at + 8, &ret->parent_pc) &&
	       read_u32(&table->gofunc, at + 12, &ret->start_line);
}

// Returns true if the function's tree of inlined calls, if it has one, begins like one there;
// counts those that do. The first call is of a function that has a name, from somewhere in this
// one.
static bool fits_tree(const struct gopclntab *table, const struct go_function *function,
                      uint64_t end, size_t *n_fitting)
{
	const bool is_long = !table->has_start_lines; // before 1.20, see find_inlined
	struct inlined_call call;
	uint32_t tree;

	if (function->n_pcdata <= PCDATA_INLINE_INDEX ||
	    function->n_funcdata <= FUNCDATA_INLINE_TREE ||
	    !read_u32(&table->table, funcdata_at(function), &tree) || tree == UINT32_MAX)
		return true;
	if (!read_u32(&table->gofunc, (uint64_t)tree + (is_long ? 12 : 4), &call.name) ||
	    !read_u32(&table->gofunc, (uint64_t)tree + (is_long ? 16 : 8), &call.parent_pc))
		return false;
	const char *name = read_string(&table->table, table->names + call.name);
	if (!name || !name[0] || (call.name > 0 && name[-1] != '\0') ||
	    call.parent_pc >= end - function->entry)
		return false;
	++*n_fitting;
	return true;
}

// True if the first trees of inlined calls lie where the functions' data are taken to be.
static bool fits_trees(const struct gopclntab *table)
{
	uint64_t entry, end, offset, next_offset;
	struct go_function function;
	size_t n = 0;

	for (uint64_t i = 0; i < table->n_functions && i < MAX_SEARCHED && n < MAX_TREES; i++) {
		if (!read_entry(table, i, &entry, &offset) ||
		    !read_entry(table, i + 1, &end, &next_offset) ||
		    !read_function(table, table->functions + offset, &function))
			return false;
		function.entry = entry;
		if (!fits_tree(table, &function, end, &n))
			return false;
	}
	return n > 0;
}

// Finds what functions' funcdata is relative to among the words of struct moduledata.
static void find_gofunc(struct gopclntab *table, struct module *module)
{
	const struct bytes relocations = relocations_of(module);
	uint64_t gofunc;

	for (int i = MODULE_FIRST_GOFUNC; i <= MODULE_LAST_GOFUNC; i++) {
		table->gofunc = (struct bytes){0};
		if (read_pointer(module, &relocations, table->module_data + i * WORD, &gofunc))
			table->gofunc.start = module_data(module, gofunc, &table->gofunc.size);
		if (table->gofunc.start && fits_trees(table))
			return;
	}
	table->gofunc = (struct bytes){0};
}

struct gopclntab *gopclntab_create(struct module *module)
{
	struct gopclntab table = {.steps_left = MAX_STEPS};
	uint64_t address;

	if (!read_section(&table, module, ".gopclntab", &address) &&
	    !read_section(&table, module, ".data.rel.ro.gopclntab", &address) &&
	    !find_header(&table, module, &address))
		return NULL;
	read_module_data(&table, module, address);
	if (table.has_offsets && table.text == 0)
		return NULL;
	if (table.has_offsets && table.module_data)
		find_gofunc(&table, module);
	struct gopclntab *result = memory_alloc(sizeof(*result));
	*result = table;
	return result;
}

size_t gopclntab_find(struct gopclntab *table, uint64_t address, struct dwarf_level *levels)
{
	struct go_function function;
	struct inlined_call call;
	size_t n = 0;

	if (!find_function(table, address, &function))
		return 0;
	while (n < MAX_INLINED && find_inlined(table, &function, address, &call)) {
		levels[n++] = level_at(table, &function, address, call.name, call.start_line);
		address = function.entry + call.parent_pc;
	}
	levels[n++] = level_at(table, &function, address, function.name, function.start_line);
	return n;
}

const char *gopclntab_name(struct gopclntab *table, uint64_t address)
{
	struct go_function function;

	return find_function(table, address, &function)
	           ? read_string(&table->table, table->names + function.name)
	           : NULL;
}

bool gopclntab_find_name(struct gopclntab *table, const char *name, uint64_t from, size_t max,
                         uint64_t *ret)
{
	const struct bytes *bytes = &table->table;
	const size_t size = strlen(name) + 1;
	struct go_function function;
	uint64_t i, entry, offset;

	if (!count_functions(table, from, &i))
		return false;
	for (i -= i > 0; i < table->n_functions && max-- > 0 && table->steps_left-- > 0; i++) {
		if (!read_entry(table, i, &entry, &offset) ||
		    !read_function(table, table->functions + offset, &function))
			return false;
		const uint64_t at = table->names + function.name;
		if (at >= bytes->size || bytes->size - at < size ||
		    memcmp(bytes->start + at, name, size) != 0)
			continue;
		*ret = entry;
		return true;
	}
	return false;
}

bool gopclntab_entry(struct gopclntab *table, uint64_t address, uint64_t *ret)
{
	struct go_function function;

	if (!find_function(table, address, &function))
		return false;
	*ret = function.entry;
	return true;
}

unsigned int gopclntab_flags(struct gopclntab *table, uint64_t address)
{
	struct go_function function;

	return find_function(table, address, &function) ? function.flag : 0;
}

int gopclntab_special(struct gopclntab *table, uint64_t address)
{
	struct go_function function;

	return find_function(table, address, &function) ? function.special : -1;
}

bool gopclntab_rule(struct gopclntab *table, uint64_t address, struct rule *ret)
{
	struct go_function function;
	int32_t pushed;

	if (!find_function(table, address, &function))
		return false;
	// How far the stack pointer is below where it was at the function's entry.
	if (!find_value(table, &function, function.pcsp, address, &pushed) || pushed < 0)
		return false;
	ARCH_NATIVE->popping_rule(pushed, ret);
	return true;
}
