#include "python.h"

#include <stdlib.h>
#include <string.h>

#include "address_space.h"
#include "loaded_symbol.h"
#include "memory.h"
#include "module.h"
#include "proc.h"
#include "python_kind.h"
#include "runtimes.h"

enum { MAX_FILES = 4096 }; // that are asked, each once for each change of the maps

// The interpreter's symbols, as its file exports them.
static bool find_symbols(struct python *python, const struct loaded_file *file)
{
	uint64_t size;

	return loaded_symbol_find(file, "_PyRuntime", &python->runtime, &size) == LOADED_YES &&
	       loaded_symbol_find(file, "PyCode_Type", &python->code_type, &size) == LOADED_YES &&
	       loaded_symbol_find(file, "PyUnicode_Type", &python->string_type, &size) ==
	           LOADED_YES &&
	       loaded_symbol_find(file, "_PyEval_EvalFrameDefault", &python->eval,
	                          &python->eval_bytes) == LOADED_YES;
}

// The minor version in the name of the file, such as libpython3.9.so.1.0 or python3.8; 0: none.
static int version_in_name(const char *path)
{
	const char *name = strrchr(path, '/');
	const char *version = name ? strstr(name, "python3.") : NULL;

	return version ? atoi(version + strlen("python3.")) : 0;
}

// Up to 3.10 only the file's name tells the version.
static int find_version(const struct python *python, const struct loaded_file *file,
                        const char *path)
{
	uint64_t address, size;
	uint32_t version;

	if (loaded_symbol_find(file, "Py_Version", &address, &size) == LOADED_YES &&
	    resident_read(file->resident, file->tid, address, &version, sizeof(version)))
		return (int)(version >> 16 & 0xff);
	(void)python;
	return version_in_name(path);
}

static bool find_layout(struct python *python, const struct loaded_file *file, const char *path)
{
	uint8_t offsets[PYTHON_OFFSETS_BYTES];
	int minor;

	if (resident_read(file->resident, file->tid, python->runtime, offsets, sizeof(offsets)) &&
	    python_layout_read(offsets, &python->layout, &minor))
		return true;
	else if (minor < 0)
		minor = find_version(python, file, path);
	const struct python_layout *layout = python_layout_of(minor);
	if (layout)
		python->layout = *layout;
	else
		python->setup->run->unknown_python = minor ? minor : -1;
	return layout;
}

static bool is_in_other_namespace(int pid)
{
	struct proc_status status;

	return proc_read_status(pid, &status) && status.ns_pid != pid;
}

static struct python *make(const struct runtimes_setup *setup, const struct python *found)
{
	struct python *python = memory_alloc(sizeof(*python));
	struct modules *modules = setup->space->modules;
	const struct code_address eval = address_space_resolve(setup->space, found->eval);

	*python = *found;
	python->natives = (struct python_natives){
	    .module = eval.module,
	    .eval = eval.address,
	    .eval_bytes = found->eval_bytes,
	};
	struct module *names = modules_add(modules, MODULE_RUNTIME, "[python]", 0, 0, -1);
	python->names_module = names->index;
	python->codes.names = names->frame_names;
	python->has_own_pids = is_in_other_namespace(setup->space->pid);
	return python;
}

static void *python_find(const struct runtimes_setup *setup, int tid)
{
	const struct maps *maps = &setup->space->maps;
	size_t n_files = 0;

	for (size_t i = 0; i < maps->count && n_files < MAX_FILES; i++) {
		const struct mapping *mapping = &maps->items[i];
		struct python found = {.setup = setup};
		struct loaded_file file;

		if (!mapping->inode || mapping->file_offset != 0 || !mapping->readable)
			continue;
		n_files++;
		if (loaded_file_read(setup->resident, tid, mapping->start, &file) == LOADED_YES &&
		    find_symbols(&found, &file) &&
		    find_layout(&found, &file, maps_path(maps, mapping)))
			return make(setup, &found);
	}
	return NULL;
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
}

const struct runtime_kind python_kind = {
    .name = "python",
    .find = python_find,
    .destroy = python_destroy,
    .update = python_update,
    .read = python_read,
    .merge = python_merge,
};
