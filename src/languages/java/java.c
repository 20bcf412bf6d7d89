// SPDX-License-Identifier: MIT
#include "java.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "frame_names.h"
#include "hotspot_code.h"
#include "java_unloads.h"
#include "loaded_symbol.h"
#include "memory.h"
#include "module.h"
#include "run_stats.h"
#include "language.h"
#include "languages.h"
#include "runtimes.h"
#include "symbol_table.h"

enum {
	MAX_NEIGHBOURS = 8, // mappings that are searched for code of the same file
	MAX_STRINGS = 1024, // constant strings of HotSpot: the names of its code
	MAX_STRING = 128,   // bytes
	PART_BYTES = 16,    // of a string, that are read at once
};

static bool is_libjvm(const struct maps *maps, const struct mapping *mapping)
{
	static const char name[] = "/libjvm.so";
	const char *path = maps_path(maps, mapping);
	const char *end = strstr(path, name);

	return mapping->inode && mapping->file_offset == 0 && end &&
	       (end[sizeof(name) - 1] == '\0' || end[sizeof(name) - 1] == ' '); // (deleted)
}

// Reading libjvm's tables.
struct search {
	const struct runtimes_setup *setup;
	struct loaded_file file;
	bool is_loaded; // its symbols can be found in memory
	struct module *module;
	uint64_t bias;
	struct java_layout layout;
	enum java_layout_result result;
};

static uint64_t find_in_file(const struct search *search, const char *name)
{
	uint64_t address;

	return symbol_table_find_named(module_dwfl(search->module), name, STT_OBJECT, &address)
	           ? address + search->bias
	           : 0;
}

static uint64_t find_variable(void *context, const char *name)
{
	const struct search *search = context;
	uint64_t address, size;
	const enum loaded_answer answer =
	    search->is_loaded ? loaded_symbol_find(&search->file, name, &address, &size)
	                      : LOADED_UNKNOWN;

	if (answer == LOADED_UNKNOWN)
		return find_in_file(search, name);
	return answer == LOADED_YES ? address : 0;
}

// HotSpot itself does not read these strings, so they need not be in memory.
static const char *string_in_file(struct module *module, uint64_t address)
{
	size_t size;
	const char *string = (const char *)module_data(module, address, &size);

	return string && memchr(string, '\0', size) ? string : NULL;
}

static const char *find_string(void *context, uint64_t address)
{
	const struct search *search = context;

	return string_in_file(search->module, address - search->bias);
}

static void read_layout(void *context)
{
	struct search *search = context;
	const struct java_source source = {
	    .memory = {.resident = search->setup->resident, .tid = search->file.tid},
	    .find_variable = find_variable,
	    .find_string = find_string,
	    .context = search,
	};

	search->result = java_layout_read(&source, &search->layout);
}

static bool open_file(struct search *search, const struct mapping *first)
{
	struct address_space *space = search->setup->space;
	const struct mapping *end = space->maps.items + space->maps.count;
	const struct mapping *mapping = first;

	for (size_t i = 0; !search->module && mapping < end && i < MAX_NEIGHBOURS; i++, mapping++) {
		if (mapping->inode != first->inode || !mapping->executable)
			continue;
		const struct code_address code = address_space_resolve(space, mapping->start);
		search->module = code.module;
		search->bias = mapping->start - code.address;
	}
	return search->module && search->module->kind == MODULE_FILE;
}

// Reads a string that HotSpot's structures point to.
static char *read_string(const struct java *java, uint64_t address)
{
	char text[MAX_STRING + 1] = "";
	size_t n = 0;

	while (n < MAX_STRING && strlen(text) == n) {
		const size_t size = PART_BYTES - (address + n) % PART_BYTES;
		const size_t left = MAX_STRING - n < size ? MAX_STRING - n : size;
		if (!java_read(&java->source.memory, address + n, text + n, left))
			return NULL;
		n += left;
		text[n] = '\0';
	}
	return memory_strdup(text);
}

struct string_search {
	const struct java *java;
	uint64_t address;
	char *text;
};

static void copy_from_file(void *context)
{
	struct string_search *search = context;
	const char *text =
	    string_in_file(search->java->libjvm, search->address - search->java->bias);

	search->text = text ? memory_strndup(text, MAX_STRING) : NULL;
}

// For java_source: the process's own strings by their address. Each is read once.
static const char *known_string(void *context, uint64_t address)
{
	struct java *java = context;
	struct string_search search = {.java = java, .address = address};

	for (size_t i = 0; i < java->n_strings; i++)
		if (java->strings[i].address == address)
			return java->strings[i].text;
	if (address == 0 || java->n_strings == MAX_STRINGS)
		return NULL;
	search.text = read_string(java, address);
	if (!search.text)
		module_guard(java->libjvm, copy_from_file, &search, MODULE_FOR_RULES);
	*array_push(java->strings, java->n_strings, java->strings_capacity) =
	    (struct java_string){address, search.text};
	return search.text;
}

static struct java *make(const struct search *search)
{
	struct java *java = memory_alloc_zeroed(1, sizeof(*java));
	struct module *names =
	    modules_add(search->setup->space->modules, MODULE_RUNTIME, "[java]", 0, 0, -1);

	java->setup = search->setup;
	java->libjvm = search->module;
	java->bias = search->bias;
	java->layout = search->layout;
	java->source = (struct java_source){
	    .memory = {.resident = search->setup->resident, .tid = search->file.tid},
	    .find_string = known_string,
	    .context = java,
	};
	java->code = (struct java_code){
	    .source = &java->source, .layout = &java->layout, .heaps = &java->heaps};
	java->methods = (struct java_methods){.layout = &java->layout, .names = names->frame_names};
	java_objects_init(&java->objects, &java->layout);
	java->names_module = names->index;
	search->setup->space->jit_code_generation++; // its code has other rules from now on
	return java;
}

static void *java_find(const struct runtimes_setup *setup, int tid, bool *ret_is_early)
{
	const struct maps *maps = &setup->space->maps;
	size_t i = 0;

	while (i < maps->count && !is_libjvm(maps, &maps->items[i]))
		i++;
	if (i == maps->count)
		return NULL;
	struct search search = {.setup = setup, .result = JAVA_LAYOUT_EARLY};
	search.is_loaded = loaded_file_read(setup->resident, tid, maps->items[i].start,
	                                    &search.file) == LOADED_YES;
	search.file.tid = tid;
	if (!open_file(&search, &maps->items[i]))
		return NULL;
	module_guard(search.module, read_layout, &search, MODULE_FOR_RULES);
	if (search.result == JAVA_LAYOUT_UNKNOWN)
		runtimes_figures(setup, &java_language)->unknown =
		    search.layout.major > 0 ? search.layout.major : -1;
	*ret_is_early = search.result == JAVA_LAYOUT_EARLY;
	return search.result == JAVA_LAYOUT_UNKNOWN ? NULL : make(&search);
}

static void java_destroy(void *context)
{
	struct java *java = context;

	for (size_t i = 0; i < java->n_strings; i++)
		free(java->strings[i].text);
	free(java->strings);
	java_code_deinit(&java->code);
	java_methods_deinit(&java->methods);
	java_threads_deinit(&java->threads);
	java_replay_deinit(&java->replay);
	free(java->frames);
	free(java->locations);
	free(java);
}

// Where HotSpot counts is known once it has begun to.
static void java_update(void *context, int tid, int64_t now_ns)
{
	struct java *java = context;

	(void)now_ns;
	java->source.memory.tid = tid;
	if (!java->looked_for_unloads)
		java->looked_for_unloads =
		    java_unloads_find(&java->source.memory, &java->layout, &java->unloads);
}

uint64_t java_read_unloaded(const struct java *java, int tid)
{
	const struct java_memory memory = {.resident = java->source.memory.resident, .tid = tid};

	return java->unloads ? java_read_word(&memory, java->unloads) : 0;
}

static size_t java_read_note(const void *context, int tid, const struct snapshot *snapshot,
                             void *bytes, size_t room)
{
	const struct java *java = context;
	struct java_note *note = bytes;

	(void)snapshot;
	if (room < sizeof(*note))
		return 0;
	*note = (struct java_note){.unloaded = java_read_unloaded(java, tid)};
	return sizeof(*note);
}

const struct language java_language = {
    .name = "java",
    .find = java_find,
    .destroy = java_destroy,
    .rule = java_rule,
    .find_start = hotspot_code_find_start,
    .rule_at_jump = java_rule_at_jump,
    .step = java_take_step,
    .update = java_update,
    .name_futex = java_name_futex,
    .name_thread = java_name_thread,
    .read = java_read_note,
    .merge = java_merge,
};
