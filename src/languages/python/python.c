// SPDX-License-Identifier: MIT
#include "python.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "clock.h"
#include "languages.h"
#include "loaded_symbol.h"
#include "memory.h"
#include "module.h"
#include "proc.h"
#include "python_guess.h"
#include "returned_variable.h"
#include "runtimes.h"
#include "symbol_table.h"

enum {
	MAX_FILES = 4096,   // that are asked, each once for each change of the files
	MAX_NEIGHBOURS = 8, // mappings that are looked at for code of the same file
};

// Of CPU time, for files whose symbols are not in memory.
#define MAX_SEARCH_NS (NS_PER_SECOND / 4)

// Looking for the interpreter in one of the process's files.
struct search {
	const struct runtimes_setup *setup;
	int tid;
	const struct mapping *mapping; // of the file's beginning
	struct loaded_file file;
	bool is_early;         // an interpreter is there, but not what tells its version
	bool is_unsure;        // its version is not known, and not seen to be as the newest one
	bool is_loaded;        // what is in memory tells where its symbols are
	bool is_linked_in;     // they need not be exported: the file's own table has them
	struct module *module; // the file itself, once it was asked
	uint64_t bias;
	int64_t end_ns; // CLOCK_THREAD_CPUTIME_ID
};

struct named {
	struct module *module;
	const char *name;
	unsigned int type;
	uint64_t address;
	bool found;
};

static void find_named(void *context)
{
	struct named *named = context;

	named->found = symbol_table_find_named(module_dwfl(named->module), named->name, named->type,
	                                       &named->address);
}

static void find_runtime_section(void *context)
{
	struct named *named = context;

	named->found = module_find_section(named->module, named->name, &named->address);
}

static bool open_file(struct search *search)
{
	struct address_space *space = search->setup->space;
	const struct mapping *end = space->maps.items + space->maps.count;
	const struct mapping *mapping = search->mapping;

	for (size_t i = 0; !search->module && mapping < end && i < MAX_NEIGHBOURS; i++, mapping++) {
		if (mapping->inode != search->mapping->inode || !mapping->executable)
			continue;
		const struct code_address code = address_space_resolve(space, mapping->start);
		search->module = code.module;
		search->bias = mapping->start - code.address;
	}
	return search->module && search->module->kind == MODULE_FILE;
}

// An exported symbol: by what the process has in memory, or where that is not there, by the file.
// *ret_size may stay 0.
static bool find_symbol(struct search *search, const char *name, unsigned int type, uint64_t *ret,
                        uint64_t *ret_size)
{
	const enum loaded_answer answer =
	    search->is_loaded ? loaded_symbol_find(&search->file, name, ret, ret_size)
	                      : LOADED_UNKNOWN;

	*ret_size = answer == LOADED_YES ? *ret_size : 0;
	if (answer != LOADED_UNKNOWN)
		return answer == LOADED_YES;
	if (clock_read_ns(CLOCK_THREAD_CPUTIME_ID) > search->end_ns || !open_file(search))
		return false;
	struct named named = {.module = search->module, .name = name, .type = type};
	module_guard(search->module, find_named, &named, MODULE_FOR_RULES);
	*ret = named.address + search->bias;
	return named.found;
}

// 3.6 has no _PyRuntime. The variable that leads to the interpreters has no name outside, but a
// function that is exported returns its value.
static bool find_interp_head(struct search *search, uint64_t *ret)
{
	uint8_t code[RETURNED_VARIABLE_CODE_BYTES];
	uint64_t address, size;

	if (!find_symbol(search, "PyInterpreterState_Head", STT_FUNC, &address, &size))
		return false;
	search->is_early =
	    !resident_read(search->setup->resident, search->tid, address, code, sizeof(code));
	return search->is_early || returned_variable(code, address, ret);
}

// What says who holds the GIL. Without it nothing is told of that.
static void find_current(struct search *search, struct python *python)
{
	uint64_t size;

	if (python->layout.runtime_current)
		python->current = python->runtime + python->layout.runtime_current;
	else if (python->is_3_6)
		find_symbol(search, "_PyThreadState_Current", STT_OBJECT, &python->current, &size);
}

static bool find_runtime(struct search *search, struct python *ret)
{
	uint64_t size;

	if (find_symbol(search, "_PyRuntime", STT_OBJECT, &ret->runtime, &size))
		return true;
	if (search->is_linked_in)
		return false; // nobody links 3.6 in any more
	ret->is_3_6 = find_interp_head(search, &ret->runtime);
	return ret->is_3_6;
}

// _PyEval_EvalFrameDefault is there from 3.6 on.
static bool find_symbols(struct search *search, struct python *ret)
{
	uint64_t size;

	return find_runtime(search, ret) &&
	       find_symbol(search, "PyCode_Type", STT_OBJECT, &ret->code_type, &size) &&
	       find_symbol(search, "PyUnicode_Type", STT_OBJECT, &ret->string_type, &size) &&
	       find_symbol(search, "_PyEval_EvalFrameDefault", STT_FUNC, &ret->eval,
	                   &ret->eval_bytes);
}

// The minor version in the name of the file, such as libpython3.9.so.1.0 or python3.8; 0: none.
static int version_in_name(const char *path)
{
	const char *name = strrchr(path, '/');
	const char *version = name ? strstr(name, "python3.") : NULL;

	return version ? atoi(version + strlen("python3.")) : 0;
}

// Up to 3.10 only the file's name tells the version.
static int find_version(struct search *search)
{
	uint64_t address, size;
	uint32_t version;

	if (find_symbol(search, "Py_Version", STT_OBJECT, &address, &size)) {
		if (resident_read(search->setup->resident, search->tid, address, &version,
		                  sizeof(version)))
			return (int)(version >> 16 & 0xff);
		search->is_early = true;
	}
	return version_in_name(maps_path(&search->setup->space->maps, search->mapping));
}

static bool is_in_other_namespace(int pid)
{
	struct proc_status status;

	return proc_read_status(pid, &status) && status.has_own_pids;
}

// False if the version is not as the newest known one, or nothing shows yet that it is.
static bool believe_guess(struct search *search, struct python *python, int minor)
{
	struct run_language *figures = runtimes_figures(search->setup, &python_language);

	python->has_own_pids = is_in_other_namespace(search->setup->space->pid);
	search->is_unsure = !python_guess_fits(python, search->tid);
	figures->unknown = search->is_unsure ? minor : 0;
	figures->guessed = search->is_unsure ? 0 : minor;
	return !search->is_unsure;
}

static bool find_layout(struct search *search, struct python *python)
{
	uint8_t offsets[PYTHON_OFFSETS_BYTES];
	int minor = python->is_3_6 ? 6 : -1;

	if (search->is_early)
		return false;
	search->is_early = minor < 0 && !resident_read(search->setup->resident, search->tid,
	                                               python->runtime, offsets, sizeof(offsets));
	if (minor < 0 && !search->is_early && python_layout_read(offsets, &python->layout, &minor))
		return !python->layout.is_guess || believe_guess(search, python, minor);
	if (minor < 0)
		minor = find_version(search);
	const struct python_layout *layout = python_layout_of(minor);
	if (layout)
		python->layout = *layout;
	else if (!search->is_early)
		runtimes_figures(python->setup, &python_language)->unknown = minor ? minor : -1;
	return layout;
}

static struct python *make(const struct runtimes_setup *setup, const struct python *found)
{
	struct python *python = memory_alloc(sizeof(*python));
	struct modules *modules = setup->space->modules;
	const struct code_address eval = address_space_resolve(setup->space, found->eval);

	*python = *found;
	python->natives = (struct python_natives){
	    .module = eval.module,
	    .modules = modules,
	    .eval = eval.address,
	    .eval_bytes = found->eval_bytes,
	};
	struct module *names = modules_add(modules, MODULE_RUNTIME, "[python]", 0, 0, -1);
	python->names_module = names->index;
	python->codes.names = names->frame_names;
	python->has_own_pids = is_in_other_namespace(setup->space->pid);
	return python;
}

// Looks for an interpreter in the program itself that is linked in and exports nothing: the table
// of all symbols has it, unless that was stripped. Each file is asked once.
static struct python *find_linked_in(const struct runtimes_setup *setup, int tid, int64_t end_ns,
                                     bool *ret_is_early)
{
	const struct maps *maps = &setup->space->maps;
	size_t i = 0;

	while (i < maps->count && (!maps->items[i].inode || maps->items[i].file_offset != 0))
		i++;
	if (i == maps->count)
		return NULL;
	struct search search = {
	    .setup = setup,
	    .tid = tid,
	    .mapping = &maps->items[i],
	    .end_ns = end_ns,
	    .is_linked_in = true,
	};
	struct python found = {.setup = setup};
	const unsigned int bit = 1u << language_position(&python_language);
	if (!open_file(&search) || search.module->lacks_languages & bit)
		return NULL;
	if (find_symbols(&search, &found) && find_layout(&search, &found)) {
		find_current(&search, &found);
		return make(setup, &found);
	}
	// From 3.10 on a section shows that one is there, even when its symbols are stripped.
	struct named section = {.module = search.module, .name = ".PyRuntime"};
	module_guard(search.module, find_runtime_section, &section, MODULE_FOR_RULES);
	runtimes_figures(setup, &python_language)->is_stripped = section.found && !found.runtime;
	*ret_is_early = search.is_unsure;
	if (!search.is_early && !search.is_unsure)
		search.module->lacks_languages |= bit;
	return NULL;
}

// Looks for an interpreter in the file. True if it is there, and its layout is known.
static bool find_in_file(struct search *search, struct python *ret)
{
	const enum loaded_answer answer = loaded_file_read(search->setup->resident, search->tid,
	                                                   search->mapping->start, &search->file);

	search->is_loaded = answer == LOADED_YES;
	if (answer == LOADED_NO || !find_symbols(search, ret) || !find_layout(search, ret))
		return false;
	find_current(search, ret);
	return true;
}

// Notes a further interpreter, if it was begun. A library that an extension is linked with by
// mistake lies idle.
static void note_other(const struct search *search, const struct python *other)
{
	struct run_language *figures = runtimes_figures(search->setup, &python_language);
	const char *path = maps_path(&search->setup->space->maps, search->mapping);
	const char *slash = strrchr(path, '/');
	uint64_t first = 0;

	if (!other->is_3_6 &&
	    resident_read(search->setup->resident, search->tid,
	                  other->runtime + other->layout.interpreters, &first, sizeof(first)) &&
	    first)
		snprintf(figures->other, sizeof(figures->other), "%s", slash ? slash + 1 : path);
}

static void *python_find(const struct runtimes_setup *setup, int tid, bool *ret_is_early)
{
	const int64_t end_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + MAX_SEARCH_NS;
	const struct maps *maps = &setup->space->maps;
	struct python early = {0}, *first = NULL;
	struct run_language *figures = runtimes_figures(setup, &python_language);
	bool is_unsure = false;
	size_t n_files = 0;

	for (size_t i = 0; i < maps->count && n_files < MAX_FILES; i++) {
		const struct mapping *mapping = &maps->items[i];
		struct search search = {
		    .setup = setup, .tid = tid, .mapping = mapping, .end_ns = end_ns};
		struct python found = {.setup = setup};
		if (!mapping->inode || mapping->file_offset != 0 || !mapping->readable)
			continue;
		n_files++;
		const int unknown = figures->unknown;
		const bool is_found = find_in_file(&search, &found);
		if (first) {
			figures->unknown = unknown;
			if (is_found)
				note_other(&search, &found);
		} else if (is_found) {
			first = make(setup, &found);
		} else if (search.is_early) {
			early = found;
			early.is_early = true;
		}
		is_unsure |= search.is_unsure;
	}
	if (first)
		return first;
	*ret_is_early = early.is_early || is_unsure;
	if (*ret_is_early)
		return early.is_early ? make(setup, &early) : NULL;
	return find_linked_in(setup, tid, end_ns, ret_is_early);
}

static void python_destroy(void *context)
{
	struct python *python = context;

	python_threads_destroy(python->threads);
	python_codes_deinit(&python->codes);
	python_natives_deinit(&python->natives);
	free(python->locations);
	free(python);
}

static void python_update(void *python, int tid, int64_t now_ns)
{
	python_threads_update(python, tid, now_ns);
	python_tasks_update(python, tid);
}

const struct language python_language = {
    .name = "python",
    .find = python_find,
    .destroy = python_destroy,
    .update = python_update,
    .name_futex = python_name_futex,
    .name_thread = python_name_thread,
    .look_ahead = python_look_ahead,
    .read = python_read,
    .merge = python_merge,
};
