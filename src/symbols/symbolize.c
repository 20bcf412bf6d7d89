// SPDX-License-Identifier: MIT
#include "symbolize.h"

#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

#include "arch.h"
#include "blocked_leaf.h"
#include "clock.h"
#include "demangle.h"
#include "dwarf_index.h"
#include "fde.h"
#include "frame_names.h"
#include "gopclntab.h"
#include "hash.h"
#include "memory.h"
#include "module.h"
#include "name_cache.h"
#include "perf_map.h"
#include "profile.h"
#include "compiled_symbol.h"
#include "symbol_table.h"
#include "text.h"

enum {
	MAX_SYSTEM_NAME_BYTES = 8192,
	MAX_NAME_BYTES = 16384,
	MAX_PATH_BYTES = 4096, // of a source file's path
};

// CPU time for the names of all modules together.
#define TOTAL_NS (180 * NS_PER_SECOND)

// What makes a function the same: raw bytes, before they are cleaned.
struct function_key {
	const char *system_name;
	const char *file;
	uint32_t start_line;
	bool is_plain; // the name is as it stands: never demangled
	// The name in the source, for when the linker's cannot be demangled; NULL: unknown. It
	// makes no other function of it.
	const char *source_name;
};

struct symbolizer {
	struct symbols *symbols;
	struct function_key *keys; // one for each function; the strings are owned
	size_t n_keys, keys_capacity;
	struct hash_index index; // of keys
	bool inlines;
	struct name_cache *cache; // borrowed; NULL: none
	int64_t left_ns;          // of the CPU time for all names
	struct dwarf_level levels[DWARF_MAX_LEVELS];
};

// What is known of one module while its locations are looked up.
struct module_symbols {
	struct module *module;            // borrowed
	const struct symbol_table *table; // owned by the module
	struct dwarf_index *dwarf;
	struct gopclntab *gopclntab; // owned by the module; NULL: none
	uint64_t dwarf_bias;         // address in the module - address in its DWARF
};

static void module_symbols_init(struct module_symbols *ret, struct module *module)
{
	uint64_t bias = 0;
	Dwarf *dwarf = module_dwarf(module, &bias);
	const struct debug_places places = module_debug_places(module);

	ret->module = module;
	ret->table = module_symbols(module);
	ret->dwarf = dwarf_index_create(dwarf, dwarf ? module_open_package(module) : -1, &places);
	ret->gopclntab = module_gopclntab(module);
	ret->dwarf_bias = bias;
}

static void module_symbols_deinit(struct module_symbols *module)
{
	dwarf_index_destroy(module->dwarf);
}

static uint64_t hash_key(const struct function_key *key)
{
	uint64_t name = hash_bytes(key->system_name, strlen(key->system_name));
	uint64_t file = hash_bytes(key->file, strlen(key->file));

	return hash_mix(hash_mix(name, file), key->start_line);
}

static bool key_equal(const void *context, uint32_t id, const void *key)
{
	const struct function_key *a = &((const struct symbolizer *)context)->keys[id];
	const struct function_key *b = key;

	return a->start_line == b->start_line && a->is_plain == b->is_plain &&
	       strcmp(a->system_name, b->system_name) == 0 && strcmp(a->file, b->file) == 0;
}

static char *clean(const char *text, size_t max_bytes)
{
	return text_clean(text, strnlen(text, max_bytes + 1), max_bytes);
}

// Returns the name of a function whose name the linker knows is not, or cannot be demangled.
static char *name_as_it_stands(const struct function_key *key)
{
	if (key->is_plain)
		return memory_strdup(key->system_name);
	return key->source_name ? text_cut(key->source_name, MAX_NAME_BYTES)
	                        : demangle_or_copy(key->system_name);
}

// Returns the function's id, new or known. Demangles only a new name.
static uint32_t intern_function(struct symbolizer *symbolizer, const struct function_key *key)
{
	struct symbols *symbols = symbolizer->symbols;
	uint64_t hash = hash_key(key);
	uint32_t id = hash_index_find(&symbolizer->index, hash, key_equal, symbolizer, key);

	if (id != HASH_NONE)
		return id;
	id = (uint32_t)symbols->n_functions;
	char *demangled = key->is_plain ? NULL : demangle(key->system_name);
	_cleanup_free_ char *name = demangled ? demangled : name_as_it_stands(key);
	*array_push(symbols->functions, symbols->n_functions, symbols->functions_capacity) =
	    (struct function){
	        .name = clean(name, MAX_NAME_BYTES),
	        .system_name = clean(key->system_name, MAX_SYSTEM_NAME_BYTES),
	        .file = clean(key->file, MAX_PATH_BYTES),
	        .start_line = key->start_line,
	    };
	*array_push(symbolizer->keys, symbolizer->n_keys, symbolizer->keys_capacity) =
	    (struct function_key){
	        .system_name = memory_strdup(key->system_name),
	        .file = memory_strdup(key->file),
	        .start_line = key->start_line,
	        .is_plain = key->is_plain,
	        .source_name = demangled || !key->source_name ? NULL : memory_strdup(name),
	    };
	hash_index_insert(&symbolizer->index, hash, id);
	return id;
}

// Returns the file's path, joined with the directory if it is relative. Owned by the caller.
static char *full_path(const struct dwarf_level *level)
{
	if (!level->file)
		return memory_strdup("");
	if (level->file[0] == '/' || !level->directory || !level->directory[0])
		return memory_strndup(level->file, MAX_PATH_BYTES);
	return memory_printf("%.*s/%.*s", MAX_PATH_BYTES, level->directory, MAX_PATH_BYTES,
	                     level->file);
}

static bool is_mangled(const char *symbol)
{
	return symbol[0] == '_' && (symbol[1] == 'Z' || symbol[1] == 'R' || symbol[1] == 'D');
}

static void add_line(struct symbolizer *symbolizer, const char *name,
                     const struct dwarf_level *level)
{
	struct symbols *symbols = symbolizer->symbols;
	_cleanup_free_ char *system_name = text_cut(name, MAX_SYSTEM_NAME_BYTES);
	_cleanup_free_ char *file = full_path(level);
	struct function_key key = {
	    .system_name = system_name,
	    .file = file,
	    .start_line = level->start_line,
	    .source_name = is_mangled(name) ? level->name : NULL,
	};
	struct line line = {.function = intern_function(symbolizer, &key), .line = level->line};

	*array_push(symbols->lines, symbols->n_lines, symbols->lines_capacity) = line;
}

// Adds a name that is never demangled.
static void add_plain_line(struct symbolizer *symbolizer, const char *name)
{
	struct symbols *symbols = symbolizer->symbols;
	_cleanup_free_ char *system_name = text_cut(name, MAX_SYSTEM_NAME_BYTES);
	const struct function_key key = {.system_name = system_name, .file = "", .is_plain = true};
	const struct line line = {.function = intern_function(symbolizer, &key)};

	*array_push(symbols->lines, symbols->n_lines, symbols->lines_capacity) = line;
}

// True if another function, which has no name, may begin between the start of one and the address.
// Tables say so; where there are none, the function's code: if nothing of it leads there. In a file
// that was not stripped that must be certain (GHC gives no names to what a module keeps to itself).
static bool may_be_another(const struct module_symbols *module, uint64_t start, uint64_t address)
{
	const struct arch_code code = {.read = module_read_code, .context = module->module};
	uint64_t function, end;

	if (fde_find(module->module, address, &function, &end))
		return function > start;
	return symbol_table_is_stripped(module->table)
	           ? !ARCH_NATIVE->leads_to(&code, start, address)
	           : !ARCH_NATIVE->may_lead_to(&code, start, address, false);
}

// Returns the symbol's name; NULL: none. A symbol without a size goes up to the next one.
static const char *find_symbol(const struct module_symbols *module, uint64_t address)
{
	uint64_t start;

	if (symbol_table_is_unsized(module->table, address, &start) &&
	    may_be_another(module, start, address))
		return NULL;
	return symbol_table_find(module->table, address);
}

// Returns the name of the function whose machine code it is. If DWARF has no linkage name, the
// symbol table's may say more than the source's bare one. Not so for C, where it only adds suffixes
// such as .constprop.0.
static const char *physical_name(const struct dwarf_level *level, const char *symbol)
{
	if (level->linkage_name)
		return level->linkage_name;
	if (symbol && (!level->name || level->is_assembly || is_mangled(symbol)))
		return symbol;
	return level->name;
}

// What people call a function that its library calls by an inner name (__GI_fdatasync). One that is
// inlined may be a part of the very function around it.
static const char *known_name(const struct module_symbols *module, uint64_t address,
                              const char *name)
{
	if (!name || is_mangled(name))
		return name;
	_cleanup_free_ char *maker = compiled_symbol_generator(name);
	if (maker) {
		const char *symbol =
		    symbol_table_find_fitting(module->table, compiled_symbol_is_maker, maker);
		return symbol ? symbol : name;
	}
	const char *better = symbol_table_find_better(module->table, address, name);
	return better ? better : name;
}

// Finds the functions at the address, innermost first; at least one, which may have no name.
static size_t find_levels(struct symbolizer *symbolizer, const struct module_symbols *module,
                          uint64_t address)
{
	struct dwarf_level *levels = symbolizer->levels;
	size_t count = dwarf_index_find(module->dwarf, address - module->dwarf_bias, levels);

	if (count == 0 && module->gopclntab)
		count = gopclntab_find(module->gopclntab, address, levels);
	if (count == 0) {
		levels[0] = (struct dwarf_level){0};
		count = 1;
	}
	return count;
}

// As Go's runtime has it: the function that stands in the machine code, with the innermost line.
static void look_up_creator(struct symbolizer *symbolizer, const struct module_symbols *module,
                            uint64_t address)
{
	const size_t count = find_levels(symbolizer, module, address);
	struct dwarf_level level = symbolizer->levels[count - 1];
	const char *symbol = find_symbol(module, address);
	const char *name = physical_name(&level, symbol);

	if (!name || !name[0])
		return;
	_cleanup_free_ char *creator = memory_printf("created by %s", name);
	level.line = symbolizer->levels[0].line;
	level.file = symbolizer->levels[0].file;
	add_line(symbolizer, creator, &level);
}

static void look_up(struct symbolizer *symbolizer, struct module_symbols *module, uint64_t address)
{
	const struct dwarf_level *levels = symbolizer->levels;
	const char *symbol = find_symbol(module, address);
	const size_t count = find_levels(symbolizer, module, address);
	const char *inner = NULL;

	for (size_t i = symbolizer->inlines ? 0 : count - 1; i < count; i++) {
		const struct dwarf_level *level = &levels[i];
		const char *name = level->linkage_name ? level->linkage_name : level->name;

		if (i == count - 1)
			name = physical_name(level, symbol);
		name = known_name(module, address, name);
		if (name && name[0] && !(inner && compiled_symbol_wraps(name, inner)))
			add_line(symbolizer, name, level);
		inner = name;
	}
}

static int compare_locations(const void *a, const void *b, void *context)
{
	const struct profile *profile = context;
	const struct location *x = &profile->locations[*(const uint32_t *)a];
	const struct location *y = &profile->locations[*(const uint32_t *)b];

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

static bool has_symbols(const struct module *module)
{
	return module->kind == MODULE_FILE || module->kind == MODULE_VDSO ||
	       module->kind == MODULE_IMAGE;
}

// Some locations of one module.
struct batch {
	struct symbolizer *symbolizer;
	const struct profile *profile;
	struct module *module;
	const uint32_t *ids; // of the locations
	size_t count;
};

// Names code that no file holds, as the process wrote the names down.
static void symbolize_jit(const struct batch *batch)
{
	const struct perf_map *map = batch->module->perf_map;
	struct symbols *symbols = batch->symbolizer->symbols;

	for (size_t i = 0; i < batch->count; i++) {
		const uint32_t id = batch->ids[i];
		const struct location *location = &batch->profile->locations[id];
		// If it was not written down yet when it was sampled, take what was later.
		const uint32_t code =
		    location->code ? location->code : perf_map_find(map, location->address);
		const char *name = perf_map_name(map, code);

		if (!name || !name[0])
			continue;
		symbols->locations[id] =
		    (struct location_lines){.first = (uint32_t)symbols->n_lines, .count = 1};
		add_plain_line(batch->symbolizer, name);
	}
	if (perf_map_unreadable(map))
		batch->module->unreadable = perf_map_unreadable(map);
	if (perf_map_size(map) > 0)
		module_rename(batch->module, "[jit]");
}

// Names a runtime's frames, as the runtime does.
static void symbolize_frames(const struct batch *batch)
{
	struct symbols *symbols = batch->symbolizer->symbols;

	for (size_t i = 0; i < batch->count; i++) {
		const uint32_t id = batch->ids[i];
		uint32_t line;
		const struct frame_function *function = frame_names_find(
		    batch->module->frame_names, batch->profile->locations[id].address, &line);

		if (!function || !function->name[0])
			continue;
		const struct function_key key = {.system_name = function->name,
		                                 .file = function->file,
		                                 .start_line = function->start_line,
		                                 .is_plain = true};
		symbols->locations[id] =
		    (struct location_lines){.first = (uint32_t)symbols->n_lines, .count = 1};
		*array_push(symbols->lines, symbols->n_lines, symbols->lines_capacity) =
		    (struct line){intern_function(batch->symbolizer, &key), line};
	}
}

static void symbolize_batch(void *context)
{
	const struct batch *batch = context;
	struct symbols *symbols = batch->symbolizer->symbols;
	struct module_symbols names;

	module_symbols_init(&names, batch->module);
	for (size_t i = 0; i < batch->count; i++) {
		const uint32_t id = batch->ids[i];
		const size_t first = symbols->n_lines;

		const struct location *location = &batch->profile->locations[id];
		if (location->code == LOCATION_CREATOR)
			look_up_creator(batch->symbolizer, &names, location->address);
		else
			look_up(batch->symbolizer, &names, location->address);
		symbols->locations[id] = (struct location_lines){
		    .first = (uint32_t)first, .count = (uint32_t)(symbols->n_lines - first)};
	}
	module_symbols_deinit(&names);
}

static struct name_key cache_key(const struct batch *batch, uint32_t id)
{
	const struct module *module = batch->module;
	const struct location *location = &batch->profile->locations[id];

	return (struct name_key){
	    .device = module->device,
	    .inode = module->inode,
	    .build = hash_bytes(module->build_id, module->build_id_size),
	    .address = location->address,
	    .code = location->code,
	};
}

static bool is_cached(const struct batch *batch)
{
	return batch->symbolizer->cache && batch->module->kind == MODULE_FILE &&
	       batch->module->build_id_size > 0;
}

// Names the location as the cache does. False if the cache does not know it.
static bool take_cached(const struct batch *batch, uint32_t id)
{
	struct symbolizer *symbolizer = batch->symbolizer;
	struct symbols *symbols = symbolizer->symbols;
	const struct name_key key = cache_key(batch, id);
	struct cached_line lines[NAME_CACHE_MAX_LINES];
	const int n = name_cache_find(symbolizer->cache, &key, lines);

	if (n < 0)
		return false;
	symbols->locations[id] =
	    (struct location_lines){.first = (uint32_t)symbols->n_lines, .count = (uint32_t)n};
	for (int i = 0; i < n; i++) {
		const struct function_key function = {
		    lines[i].system_name, lines[i].file, lines[i].start_line, lines[i].is_plain,
		    lines[i].source_name[0] ? lines[i].source_name : NULL};
		*array_push(symbols->lines, symbols->n_lines, symbols->lines_capacity) =
		    (struct line){intern_function(symbolizer, &function), lines[i].line};
	}
	return true;
}

// Returns the ids that the cache does not know; the caller frees them.
static uint32_t *take_all_cached(const struct batch *batch, size_t *ret_count)
{
	uint32_t *unknown = memory_alloc((batch->count + 1) * sizeof(*unknown));
	size_t n = 0;

	for (size_t i = 0; i < batch->count; i++)
		if (!is_cached(batch) || !take_cached(batch, batch->ids[i]))
			unknown[n++] = batch->ids[i];
	*ret_count = n;
	return unknown;
}

static void add_to_cache(const struct batch *batch, uint32_t id)
{
	const struct symbolizer *symbolizer = batch->symbolizer;
	const struct location_lines *found = &symbolizer->symbols->locations[id];
	const struct name_key key = cache_key(batch, id);
	struct cached_line lines[NAME_CACHE_MAX_LINES];

	for (uint32_t i = 0; i < found->count && i < NAME_CACHE_MAX_LINES; i++) {
		const struct line *line = &symbolizer->symbols->lines[found->first + i];
		const struct function_key *function = &symbolizer->keys[line->function];
		lines[i] = (struct cached_line){function->system_name,
		                                function->file,
		                                function->source_name ? function->source_name : "",
		                                function->start_line,
		                                line->line,
		                                function->is_plain};
	}
	name_cache_add(symbolizer->cache, &key, lines, found->count);
}

// Looks up the rest in the file.
static void symbolize_unknown(const struct batch *batch)
{
	struct symbolizer *symbolizer = batch->symbolizer;

	module_fetch_debug_files(batch->module);
	if (symbolizer->left_ns <= 0) {
		batch->module->unreadable = "no time was left for it";
		return;
	}
	// The locations before the one that it failed at keep their names. A function that was
	// about to be added is forgotten.
	if (!module_guard(batch->module, symbolize_batch, (void *)batch, MODULE_FOR_NAMES)) {
		symbolizer->symbols->n_functions = symbolizer->n_keys;
		return;
	}
	for (size_t i = 0; i < batch->count && is_cached(batch); i++)
		add_to_cache(batch, batch->ids[i]);
}

static void symbolize_module(const struct batch *batch)
{
	struct symbolizer *symbolizer = batch->symbolizer;
	struct module *module = batch->module;
	const int64_t start_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);

	if (module->frame_names)
		symbolize_frames(batch);
	if (module->perf_map)
		symbolize_jit(batch);
	if (!has_symbols(module) || !module_dwfl(module))
		return;
	size_t n;
	_cleanup_free_ uint32_t *ids = take_all_cached(batch, &n);
	if (n > 0)
		symbolize_unknown(&(struct batch){symbolizer, batch->profile, module, ids, n});
	symbolizer->left_ns -= clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
}

struct symbolizer *symbolizer_create(const struct symbolize_options *options, struct symbols *ret)
{
	struct symbolizer *symbolizer = memory_alloc_zeroed(1, sizeof(*symbolizer));

	*ret = (struct symbols){0};
	symbolizer->symbols = ret;
	symbolizer->inlines = options->inlines;
	symbolizer->cache = options->cache;
	symbolizer->left_ns = TOTAL_NS;
	return symbolizer;
}

void symbolizer_destroy(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	for (size_t i = 0; i < symbolizer->n_keys; i++) {
		free((char *)symbolizer->keys[i].system_name);
		free((char *)symbolizer->keys[i].file);
		free((char *)symbolizer->keys[i].source_name);
	}
	free(symbolizer->keys);
	hash_index_deinit(&symbolizer->index);
	free(symbolizer);
}

void symbols_fit(struct symbols *symbols, size_t n_locations)
{
	symbols->locations = memory_grow(symbols->locations, &symbols->locations_capacity,
	                                 n_locations + 1, sizeof(*symbols->locations));
	while (symbols->n_locations < n_locations)
		symbols->locations[symbols->n_locations++] = (struct location_lines){0};
}

void symbolizer_look_up(struct symbolizer *symbolizer, const struct profile *profile,
                        struct modules *modules, uint32_t *ids, size_t n)
{
	size_t next;

	symbols_fit(symbolizer->symbols, profile->n_locations);
	if (n > 0)
		qsort_r(ids, n, sizeof(*ids), compare_locations, (void *)profile);
	for (size_t i = 0; i < n; i = next) {
		uint32_t id = profile->locations[ids[i]].module;

		for (next = i + 1; next < n; next++)
			if (profile->locations[ids[next]].module != id)
				break;
		if (id >= modules->count)
			continue;
		symbolize_module(&(struct batch){
		    .symbolizer = symbolizer,
		    .profile = profile,
		    .module = modules->items[id],
		    .ids = ids + i,
		    .count = next - i,
		});
	}
}

void symbolize(struct profile *profile, struct modules *modules,
               const struct symbolize_options *options, struct symbols *ret)
{
	struct symbolizer *symbolizer = symbolizer_create(options, ret);
	const size_t n = profile->n_locations;
	_cleanup_free_ uint32_t *ids = memory_alloc((n + 1) * sizeof(*ids));

	for (size_t i = 0; i < n; i++)
		ids[i] = (uint32_t)i;
	symbolizer_look_up(symbolizer, profile, modules, ids, n);
	for (size_t i = 0; i < ret->n_locations; i++)
		ret->n_unnamed += ret->locations[i].count == 0;
	symbolizer_destroy(symbolizer);
	blocked_leaf_shorten(profile, modules, ret);
}

void symbols_add_name(struct symbols *symbols, size_t n_locations, uint32_t location,
                      const char *name)
{
	symbols_fit(symbols, n_locations);
	symbols->locations[location] =
	    (struct location_lines){.first = (uint32_t)symbols->n_lines, .count = 1};
	*array_push(symbols->lines, symbols->n_lines, symbols->lines_capacity) =
	    (struct line){.function = (uint32_t)symbols->n_functions};
	*array_push(symbols->functions, symbols->n_functions, symbols->functions_capacity) =
	    (struct function){.name = memory_strdup(name),
	                      .system_name = memory_strdup(name),
	                      .file = memory_strdup("")};
}

void symbols_deinit(struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->n_functions; i++) {
		free(symbols->functions[i].name);
		free(symbols->functions[i].system_name);
		free(symbols->functions[i].file);
	}
	free(symbols->functions);
	free(symbols->lines);
	free(symbols->locations);
	*symbols = (struct symbols){0};
}
