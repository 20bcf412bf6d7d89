// SPDX-License-Identifier: MIT
#include "v8.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "frame_names.h"
#include "languages.h"
#include "loaded_symbol.h"
#include "memory.h"
#include "module.h"
#include "run_stats.h"
#include "runtimes.h"

enum {
	MAX_FILES = 4096,   // that are asked
	MAX_NEIGHBOURS = 8, // mappings that are searched for code of the same file
};

struct search {
	const struct runtimes_setup *setup;
	struct module *module;
	enum v8_layout_result result;
	const struct v8_layout *layout;
	int major;
};

static void find_layout(void *context)
{
	struct search *search = context;

	search->result =
	    v8_layout_find(module_dwfl(search->module), &search->layout, &search->major);
}

static bool open_file(struct search *search, const struct mapping *first)
{
	struct address_space *space = search->setup->space;
	const struct mapping *end = space->maps.items + space->maps.count;
	const struct mapping *mapping = first;

	search->module = NULL;
	for (size_t i = 0; !search->module && mapping < end && i < MAX_NEIGHBOURS; i++, mapping++)
		if (mapping->inode == first->inode && mapping->executable)
			search->module = address_space_resolve(space, mapping->start).module;
	return search->module && search->module->kind == MODULE_FILE;
}

// True if the file may have V8: by what its loader has in memory, or where that is not there, by
// its place. V8 is in the program itself or in a library of Node's.
static bool is_candidate(const struct runtimes_setup *setup, int tid, const struct mapping *mapping,
                         bool is_program)
{
	const char *path = maps_path(&setup->space->maps, mapping);
	const char *slash = strrchr(path, '/');
	struct loaded_file file;
	uint64_t address, size;
	enum loaded_answer answer = loaded_file_read(setup->resident, tid, mapping->start, &file);

	if (answer == LOADED_YES)
		answer =
		    loaded_symbol_find(&file, "_ZN2v88internal7Version6major_E", &address, &size);
	return answer == LOADED_YES ||
	       (answer == LOADED_UNKNOWN &&
	        (is_program || (slash && fnmatch("libnode.so*", slash + 1, 0) == 0)));
}

static struct v8 *make(const struct search *search)
{
	struct v8 *v8 = memory_alloc_zeroed(1, sizeof(*v8));
	struct module *names =
	    modules_add(search->setup->space->modules, MODULE_RUNTIME, "[v8]", 0, 0, -1);

	v8->setup = search->setup;
	v8->layout = search->layout;
	v8->functions =
	    (struct v8_functions){.layout = search->layout, .names = names->frame_names};
	v8->names_module = names->index;
	return v8;
}

// Looks in the file. Each is asked once.
static struct v8 *find_in_file(const struct runtimes_setup *setup, const struct mapping *mapping)
{
	const unsigned int bit = 1u << language_position(&v8_language);
	struct search search = {.setup = setup};

	if (!open_file(&search, mapping) || search.module->lacks_languages & bit)
		return NULL;
	module_guard(search.module, find_layout, &search, MODULE_FOR_RULES);
	if (search.result == V8_LAYOUT_KNOWN)
		return make(&search);
	if (search.result == V8_LAYOUT_UNKNOWN)
		runtimes_figures(setup, &v8_language)->unknown =
		    search.major > 0 ? search.major : -1;
	search.module->lacks_languages |= bit;
	return NULL;
}

static void *v8_find(const struct runtimes_setup *setup, int tid, bool *ret_is_early)
{
	const struct maps *maps = &setup->space->maps;
	struct v8 *v8 = NULL;
	size_t n_files = 0;

	(void)ret_is_early;
	for (size_t i = 0; i < maps->count && n_files < MAX_FILES && !v8; i++) {
		const struct mapping *mapping = &maps->items[i];
		if (!mapping->inode || mapping->file_offset != 0 || !mapping->readable)
			continue;
		if (is_candidate(setup, tid, mapping, n_files++ == 0))
			v8 = find_in_file(setup, mapping);
	}
	return v8;
}

static void v8_destroy(void *context)
{
	struct v8 *v8 = context;

	v8_functions_deinit(&v8->functions);
	free(v8->locations);
	free(v8);
}

const struct language v8_language = {
    .name = "v8",
    .find = v8_find,
    .destroy = v8_destroy,
    .look_ahead = v8_look_ahead,
    .read = v8_read_note,
    .merge = v8_merge,
};
