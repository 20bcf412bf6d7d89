// SPDX-License-Identifier: MIT
#include "dwarf_index.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "debug_file.h"
#include "guard.h"
#include "interval_map.h"
#include "maps.h"
#include "memory.h"
#include "split_package.h"
#include "unpack.h"

// Of all units together; far more than the largest programs have.
enum { MAX_ALL_RANGES = 1 << 24 };

// The functions and inlined calls of one DWARF unit, indexed by one walk over its DIEs.

// Bounds for one unit, beyond what real ones have. The walk itself only ever moves forward, so it
// is bounded by the unit's size.
enum {
	MAX_DEPTH = 512, // of nested DIEs
	MAX_NODES = 1 << 22,
	MAX_SCOPES = 1 << 22,
	MAX_RANGES = 1 << 23,
	MAX_ORIGINS = 16, // of an inlined or concrete function's DIE, one after the other
	MAX_QUALIFIERS = 32,
	MAX_NAME_BYTES = 4096,
	ONLY_RANGE = 1, // what dwarf_ranges returns for a DIE with one range, not a list
};

#define NONE UINT32_MAX

// --- The .dwo file of a unit whose functions are in a file of their own
//
// libdw would find it by itself, and open whatever is at the path that the file names.

enum split_dwarf_place {
	SPLIT_DWARF_COMPILED, // at the path that it was compiled to
	SPLIT_DWARF_KEPT, // in one of the user's directories: at that path there, or by its name
};

enum { MAX_PATH_BYTES = 4096 };

static const char *string_attribute(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr(die, name, &attribute));
}

// Opens the unit's .dwo file in that place; places NULL: nowhere. NULL: it is not there.
// split_package_find tells whether it belongs to the unit.
static struct split_package *split_dwarf_open(const struct debug_places *places, void *skeleton_die,
                                              enum split_dwarf_place place)
{
	Dwarf_Die *skeleton = skeleton_die;
	const char *name = string_attribute(skeleton, DW_AT_dwo_name)
	                       ?: string_attribute(skeleton, DW_AT_GNU_dwo_name),
	           *directory = string_attribute(skeleton, DW_AT_comp_dir);

	if (!places || !name || strlen(name) > MAX_PATH_BYTES ||
	    (directory && strlen(directory) > MAX_PATH_BYTES))
		return NULL;
	_cleanup_free_ char *path = name[0] == '/' || !directory
	                                ? memory_strdup(name)
	                                : memory_printf("%s/%s", directory, name);
	const int fd = place == SPLIT_DWARF_COMPILED ? debug_file_open_compiled(places, path)
	                                             : debug_file_open_split(places, path);
	return fd < 0 ? NULL : split_package_open(unpack_sections(fd));
}

// --- The unit

// A DW_TAG_subprogram with code, or a DW_TAG_inlined_subroutine in one. In the order of their
// DIEs, so that parents come first.
struct node {
	unsigned char *die; // the address of its DIE in libdw's data
	uint32_t function;  // position in functions
	uint32_t parent;    // the node that it lies in, if it was inlined; else NONE
	uint32_t depth;     // number of parents
	uint32_t name;      // position in names, NONE: not looked up yet
};

// A DW_TAG_subprogram with code. Most are never asked for, so the ranges of what was inlined in
// it are read when it is.
struct function {
	uint32_t first, last;    // its own node, and the last one in it (another's may lie between)
	struct interval_map map; // to positions in nodes
	bool is_mapped;
};

// A namespace or type that functions are declared in.
struct scope {
	unsigned char *die, *end; // the addresses of its DIE and behind its children, if it has any
	uint32_t parent;          // NONE: the unit
};

struct name {
	const char *linkage_name; // borrowed from Dwarf
	const char *name;         // likewise, or qualified_name
	char *qualified_name;     // owned
	uint32_t start_line;
};

struct dwarf_unit {
	Dwarf_Die lines_die; // the unit's DIE that has the line table (a skeleton, if it is split)
	Dwarf_Die root;      // the unit's DIE that has the children
	struct split_base base;
	struct split_package *own_package; // of a .dwo file; NULL: none
	const char *directory;
	bool is_assembly;
	bool has_scopes; // functions may be declared in scopes
	struct node *nodes;
	size_t n_nodes, nodes_capacity;
	struct function *functions;
	size_t n_functions, functions_capacity;
	struct scope *scopes;
	size_t n_scopes, scopes_capacity;
	struct name *names;
	size_t n_names, names_capacity;
	struct interval_map map; // to positions in functions
	size_t range_budget;
};

// Returns where the DIE's list of ranges begins, so that libdw begins there with the base address
// that it is given, not with that of the unit, which it does not know. 0: it has none.
static ptrdiff_t list_of_ranges(Dwarf_Die *die, const struct split_base *split)
{
	Dwarf_Attribute attribute;

	return dwarf_attr(die, DW_AT_ranges, &attribute)
	           ? split_package_range_list(split, &attribute)
	           : 0;
}

// Adds the address ranges of the DIE (a Dwarf_Die) to the map, at most `*budget` of them, and
// takes them off it. Returns whether there were any. `split`: of a unit out of a package, or NULL.
static bool dwarf_unit_add_ranges(void *die, struct interval_map *map, uint32_t value,
                                  uint32_t priority, const struct split_base *split, size_t *budget)
{
	const uint64_t low_pc = split ? split->low_pc : 0;
	Dwarf_Addr base = low_pc, start, end;
	ptrdiff_t offset = split && split->detached ? list_of_ranges(die, split) : 0;
	// A list right at the section's start can only be asked for in the usual way.
	bool lacks_base = split && split->detached && offset == 0;
	bool any = false;

	while (*budget > 0 && (offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
		--*budget;
		if (lacks_base && offset != ONLY_RANGE && base == 0) {
			start += low_pc;
			end += low_pc;
			base = low_pc;
		}
		lacks_base = false;
		// Functions that the linker dropped stand at address 0, where no code is: it is
		// the ELF header's place.
		if (start == 0 || start >= end)
			continue;
		interval_map_add(map, start, end, value, priority);
		any = true;
	}
	return any;
}

// Where the walk is: the ancestors of the current DIE.
struct level {
	uint32_t node;         // the function it lies in, or NONE
	uint32_t scope;        // the scope it lies in, or NONE
	uint32_t opened_scope; // the scope to close when this level ends, or NONE
};

struct walk {
	struct dwarf_unit *unit;
	unsigned char *end; // of the unit's data
	struct level levels[MAX_DEPTH];
	size_t depth; // of the current DIE; its level is levels[depth]
};

static uint32_t push_node(struct dwarf_unit *unit, Dwarf_Die *die, uint32_t function,
                          uint32_t parent)
{
	uint32_t id = (uint32_t)unit->n_nodes;
	uint32_t depth = parent == NONE ? 0 : unit->nodes[parent].depth + 1;

	*array_push(unit->nodes, unit->n_nodes, unit->nodes_capacity) = (struct node){
	    .die = die->addr, .function = function, .parent = parent, .depth = depth, .name = NONE};
	return id;
}

// Adds the node of a function that has machine code; NONE: it has none.
static uint32_t add_function(struct dwarf_unit *unit, Dwarf_Die *die)
{
	uint32_t function = (uint32_t)unit->n_functions;

	if (unit->n_nodes >= MAX_NODES ||
	    !dwarf_unit_add_ranges(die, &unit->map, function, 0, &unit->base, &unit->range_budget))
		return NONE;
	uint32_t id = push_node(unit, die, function, NONE);
	*array_push(unit->functions, unit->n_functions, unit->functions_capacity) =
	    (struct function){.first = id, .last = id};
	return id;
}

// Adds the node of a call that was inlined into `parent`.
static uint32_t add_inlined(struct dwarf_unit *unit, Dwarf_Die *die, uint32_t parent)
{
	if (parent == NONE || unit->n_nodes >= MAX_NODES ||
	    unit->nodes[parent].depth + 1 >= DWARF_MAX_LEVELS)
		return parent;
	uint32_t function = unit->nodes[parent].function;
	uint32_t id = push_node(unit, die, function, parent);
	unit->functions[function].last = id;
	return id;
}

static uint32_t add_scope(struct walk *walk, Dwarf_Die *die)
{
	struct dwarf_unit *unit = walk->unit;

	if (!unit->has_scopes || unit->n_scopes >= MAX_SCOPES)
		return NONE;
	*array_push(unit->scopes, unit->n_scopes, unit->scopes_capacity) = (struct scope){
	    .die = die->addr, .end = die->addr, .parent = walk->levels[walk->depth].scope};
	return (uint32_t)(unit->n_scopes - 1);
}

// Notes the DIE if it matters. Returns whether its children may matter; *inside is their level.
static bool visit(struct walk *walk, Dwarf_Die *die, struct level *inside)
{
	*inside = walk->levels[walk->depth];
	inside->opened_scope = NONE;
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		inside->node = add_function(walk->unit, die);
		return true;
	case DW_TAG_inlined_subroutine:
		inside->node = add_inlined(walk->unit, die, inside->node);
		return true;
	case DW_TAG_namespace:
		inside->scope = inside->opened_scope = add_scope(walk, die);
		return true;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type:
		inside->scope = inside->opened_scope = add_scope(walk, die);
		return walk->unit->has_scopes;
	case DW_TAG_subroutine_type:
	case DW_TAG_array_type:
	case DW_TAG_call_site:
	case DW_TAG_GNU_call_site:
	case DW_TAG_GNU_formal_parameter_pack:
	case DW_TAG_GNU_template_parameter_pack:
		return false;
	default:
		return true;
	}
}

// Returns what follows a DIE and its children, if the file says where that is; else NULL.
static unsigned char *skip_children(struct walk *walk, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Die sibling;

	if (!dwarf_attr(die, DW_AT_sibling, &attribute) ||
	    !dwarf_formref_die(&attribute, &sibling) || sibling.cu != die->cu)
		return NULL;
	unsigned char *next = sibling.addr;
	return next > (unsigned char *)die->addr && next < walk->end ? next : NULL;
}

// Returns what follows a DIE that has no children: a DIE, or the zero byte that ends its siblings.
// libdw puts the address of either into the result (dwarf_siblingof.c). With children,
// dwarf_siblingof would look for the end of each, for each level again, and might never end.
static unsigned char *skip_leaf(struct walk *walk, Dwarf_Die *die)
{
	Dwarf_Die sibling = {.addr = NULL};

	if (dwarf_siblingof(die, &sibling) < 0)
		return NULL;
	unsigned char *next = sibling.addr;
	return next > (unsigned char *)die->addr && next < walk->end ? next : NULL;
}

// Leaves the levels that end at `next`. Returns the next DIE, or NULL at the end of the unit.
static unsigned char *leave_levels(struct walk *walk, unsigned char *next)
{
	while (next && next < walk->end && *next == 0) {
		struct level *level = &walk->levels[walk->depth];

		if (walk->depth == 0)
			return NULL;
		next++;
		if (level->opened_scope != NONE)
			walk->unit->scopes[level->opened_scope].end = next;
		walk->depth--;
	}
	return next && next < walk->end ? next : NULL;
}

static void walk_unit(struct walk *walk)
{
	struct dwarf_unit *unit = walk->unit;
	Dwarf_Die die, child;

	if (dwarf_child(&unit->root, &die) != 0)
		return;
	walk->levels[0] = (struct level){.node = NONE, .scope = NONE, .opened_scope = NONE};
	while (dwarf_tag(&die) != DW_TAG_invalid) {
		struct level inside;
		bool descend = visit(walk, &die, &inside);
		unsigned char *next = descend ? NULL : skip_children(walk, &die);

		if (!next) {
			int no_child = dwarf_child(&die, &child);

			if (no_child < 0 || (!no_child && walk->depth + 1 >= MAX_DEPTH))
				return;
			if (!no_child) {
				walk->levels[++walk->depth] = inside;
				die = child;
				continue;
			}
			next = skip_leaf(walk, &die);
		}
		next = leave_levels(walk, next);
		if (!next)
			return;
		die = (Dwarf_Die){.addr = next, .cu = unit->root.cu};
	}
}

static bool language_has_scopes(int language)
{
	switch (language) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Go:
	case DW_LANG_Mips_Assembler:
		return false;
	default:
		return true;
	}
}

// Returns where the unit of a split file that holds the DIE ends; 0: not found.
static uint64_t split_unit_end(Dwarf_Die *die)
{
	Dwarf *dwarf = dwarf_cu_getdwarf(die->cu);
	Dwarf_Off offset = 0, next, die_offset = dwarf_dieoffset(die);

	while (dwarf_next_unit(dwarf, offset, &next, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
	       0) {
		if (next <= offset)
			return 0;
		if (die_offset > offset && die_offset < next)
			return next;
		offset = next;
	}
	return 0;
}

static bool find_in_file(struct dwarf_unit *unit, const struct debug_places *places,
                         enum split_dwarf_place place, Dwarf_Die *ret)
{
	unit->own_package = split_dwarf_open(places, &unit->lines_die, place);
	if (unit->own_package &&
	    split_package_find(unit->own_package, &unit->lines_die, ret, &unit->base))
		return true;
	split_package_close(take_pointer(unit->own_package));
	return false;
}

// Finds the other half of a split unit: where its skeleton says, in the package, or where users
// keep it.
static bool find_split(struct dwarf_unit *unit, struct split_package *package,
                       const struct debug_places *places, Dwarf_Die *ret)
{
	return find_in_file(unit, places, SPLIT_DWARF_COMPILED, ret) ||
	       (package && split_package_find(package, &unit->lines_die, ret, &unit->base)) ||
	       find_in_file(unit, places, SPLIT_DWARF_KEPT, ret);
}

// Walks the unit whose DIE is at `die_offset` of .debug_info and which ends at `end_offset`. The
// result is owned by the caller, never NULL; `dwarf` is borrowed, and so are `package` and
// `places`, where split units may be (debug_file.h), which may be NULL.
static struct dwarf_unit *dwarf_unit_create(Dwarf *dwarf, struct split_package *package,
                                            const struct debug_places *places, uint64_t die_offset,
                                            uint64_t end_offset)
{
	struct dwarf_unit *unit = memory_alloc_zeroed(1, sizeof(*unit));
	_cleanup_free_ struct walk *walk = memory_alloc_zeroed(1, sizeof(*walk));
	Dwarf_Die split;

	if (!dwarf_offdie(dwarf, die_offset, &unit->lines_die))
		return unit;
	unit->root = unit->lines_die;
	if (find_split(unit, package, places, &split)) {
		unit->root = split;
		die_offset = dwarf_dieoffset(&split);
		end_offset = split_unit_end(&split);
	}
	unit->directory = string_attribute(&unit->lines_die, DW_AT_comp_dir);
	int language = dwarf_srclang(&unit->root);
	unit->is_assembly = language == DW_LANG_Mips_Assembler;
	unit->has_scopes = language_has_scopes(language);
	if (end_offset > die_offset) {
		walk->unit = unit;
		walk->end = (unsigned char *)unit->root.addr + (end_offset - die_offset);
		unit->range_budget = MAX_ALL_RANGES;
		walk_unit(walk);
	}
	interval_map_build(&unit->map);
	return unit;
}

// NULL is accepted.
static void dwarf_unit_destroy(struct dwarf_unit *unit)
{
	if (!unit)
		return;
	for (size_t i = 0; i < unit->n_names; i++)
		free(unit->names[i].qualified_name);
	free(unit->names);
	free(unit->scopes);
	for (size_t i = 0; i < unit->n_functions; i++)
		interval_map_deinit(&unit->functions[i].map);
	free(unit->functions);
	free(unit->nodes);
	interval_map_deinit(&unit->map);
	split_package_close(unit->own_package);
	free(unit);
}

// Returns the innermost scope around the DIE at the address, or NONE. Scopes are in the order of
// their DIEs: the last one that begins before it either holds it, or one of its parents does.
static uint32_t scope_of(const struct dwarf_unit *unit, const unsigned char *die)
{
	size_t low = 0, high = unit->n_scopes;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (unit->scopes[middle].die < die)
			low = middle + 1;
		else
			high = middle;
	}
	uint32_t scope = low ? (uint32_t)(low - 1) : NONE;
	while (scope != NONE && unit->scopes[scope].end <= die)
		scope = unit->scopes[scope].parent;
	return scope;
}

// Returns the DIE that declares the function, in its namespace or class.
static Dwarf_Die declaration_of(Dwarf_Die die)
{
	for (int i = 0; i < MAX_ORIGINS; i++) {
		Dwarf_Attribute attribute;
		Dwarf_Die origin;

		if (!dwarf_attr(&die, DW_AT_abstract_origin, &attribute) &&
		    !dwarf_attr(&die, DW_AT_specification, &attribute))
			break;
		if (!dwarf_formref_die(&attribute, &origin))
			break;
		die = origin;
	}
	return die;
}

// Returns "scope::name", or NULL if there is no named scope.
static char *qualify(struct dwarf_unit *unit, const Dwarf_Die *function, const char *name)
{
	Dwarf_Die declaration = declaration_of(*function);
	char *result = NULL;

	if (declaration.cu != unit->root.cu)
		return NULL;
	uint32_t scope = scope_of(unit, declaration.addr);
	for (int i = 0; scope != NONE && i < MAX_QUALIFIERS; scope = unit->scopes[scope].parent) {
		Dwarf_Die die = {.addr = unit->scopes[scope].die, .cu = unit->root.cu};
		const char *outer = string_attribute(&die, DW_AT_name);
		const char *inner = result ? result : name;

		if (!outer && dwarf_tag(&die) == DW_TAG_namespace)
			outer = "(anonymous namespace)";
		if (!outer || strlen(outer) + strlen(inner) > MAX_NAME_BYTES)
			continue;
		char *longer = memory_printf("%s::%s", outer, inner);
		free(result);
		result = longer;
		i++;
	}
	return result;
}

static const struct name *name_of(struct dwarf_unit *unit, struct node *node, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	struct name name = {0};
	int line;

	if (node->name != NONE)
		return &unit->names[node->name];
	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		name.linkage_name = dwarf_formstring(&attribute);
	name.name = dwarf_diename(die);
	if (name.name && unit->has_scopes)
		name.qualified_name = qualify(unit, die, name.name);
	if (name.qualified_name)
		name.name = name.qualified_name;
	if (dwarf_decl_line(die, &line) == 0 && line > 0)
		name.start_line = (uint32_t)line;
	node->name = (uint32_t)unit->n_names;
	struct name *slot = array_push(unit->names, unit->n_names, unit->names_capacity);
	*slot = name;
	return slot;
}

static uint32_t number_attribute(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) != 0 || value > INT32_MAX)
		return 0;
	return (uint32_t)value;
}

// A place in the source.
struct place {
	const char *file;
	uint32_t line;
};

static struct place place_of_address(struct dwarf_unit *unit, uint64_t address)
{
	Dwarf_Line *row = dwarf_getsrc_die(&unit->lines_die, address);
	struct place place = {0};
	int line;

	if (!row)
		return place;
	place.file = dwarf_linesrc(row, NULL, NULL);
	if (place.file && dwarf_lineno(row, &line) == 0 && line > 0)
		place.line = (uint32_t)line;
	return place;
}

// Returns the path that a DIE's attribute numbers. The numbers are of the table of the unit that
// has the lines: a split unit's own, if it has one, may be for its types alone (LLVM).
static const char *file_attribute(struct dwarf_unit *unit, Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;
	Dwarf_Files *files;
	size_t n_files;

	if (dwarf_formudata(dwarf_attr_integrate(die, name, &attribute), &number) != 0 ||
	    dwarf_getsrcfiles(&unit->lines_die, &files, &n_files) != 0 || number >= n_files)
		return NULL;
	return dwarf_filesrc(files, number, NULL, NULL);
}

// Returns where the function that the DIE describes was called, before it was inlined there.
static struct place place_of_call(struct dwarf_unit *unit, Dwarf_Die *die)
{
	struct place place = {.file = file_attribute(unit, die, DW_AT_call_file)};

	if (place.file)
		place.line = number_attribute(die, DW_AT_call_line);
	return place;
}

// Reads the ranges of the calls that were inlined into the function; deeper ones go first.
static void map_function(struct dwarf_unit *unit, uint32_t id)
{
	struct function *function = &unit->functions[id];

	for (uint32_t i = function->first + 1; i <= function->last; i++) {
		struct node *node = &unit->nodes[i];
		Dwarf_Die die = {.addr = node->die, .cu = unit->root.cu};

		if (node->function == id)
			dwarf_unit_add_ranges(&die, &function->map, i, node->depth, &unit->base,
			                      &unit->range_budget);
	}
	interval_map_build(&function->map);
	function->is_mapped = true;
}

// Returns the innermost node at the address, or NONE.
static uint32_t node_at(struct dwarf_unit *unit, uint64_t address)
{
	uint32_t id = interval_map_find(&unit->map, address);

	if (id == INTERVAL_NONE)
		return NONE;
	if (!unit->functions[id].is_mapped)
		map_function(unit, id);
	uint32_t node = interval_map_find(&unit->functions[id].map, address);
	return node != INTERVAL_NONE ? node : unit->functions[id].first;
}

// As dwarf_index_find, within the unit.
static size_t dwarf_unit_find(struct dwarf_unit *unit, uint64_t address, struct dwarf_level *levels)
{
	struct place place = place_of_address(unit, address);
	uint32_t id = node_at(unit, address);
	size_t count = 0;

	if (id == NONE && place.file)
		levels[count++] = (struct dwarf_level){
		    .file = place.file, .line = place.line, .directory = unit->directory};
	while (id != NONE && count < DWARF_MAX_LEVELS) {
		struct node *node = &unit->nodes[id];
		Dwarf_Die die = {.addr = node->die, .cu = unit->root.cu};
		const struct name *name = name_of(unit, node, &die);

		levels[count++] = (struct dwarf_level){
		    .linkage_name = name->linkage_name,
		    .name = name->name,
		    .is_assembly = unit->is_assembly,
		    .file = place.file ? place.file : file_attribute(unit, &die, DW_AT_decl_file),
		    .directory = unit->directory,
		    .line = place.line,
		    .start_line = name->start_line,
		};
		id = node->parent;
		if (id != NONE)
			place = place_of_call(unit, &die);
	}
	return count;
}

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
	guard_leave_memory();
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
	size_t header_bytes, budget = MAX_ALL_RANGES;

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
