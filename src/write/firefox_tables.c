// SPDX-License-Identifier: MIT
#include "firefox_tables.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "memory.h"
#include "module.h"
#include "writer.h"

enum { RESOURCE_LIBRARY = 1 }; // resourceTypes.library in the source of Firefox Profiler

#define NO_PARENT UINT32_MAX

static const struct {
	const char *name, *color;
} categories[] = {
    [FIREFOX_OTHER] = {"Other", "grey"},
    [FIREFOX_RUNNING] = {"Running", "green"},
    [FIREFOX_WAITING_FOR_CPU] = {"Waiting for a CPU", "yellow"},
    [FIREFOX_SLEEPING] = {"Sleeping", "blue"},
    [FIREFOX_DISK] = {"Disk", "orange"},
    [FIREFOX_STOPPED] = {"Stopped", "red"},
    [FIREFOX_KERNEL] = {"Kernel", "purple"},
};

const char *firefox_category_name(enum firefox_category category)
{
	return categories[category].name;
}

const char *firefox_category_color(enum firefox_category category)
{
	return categories[category].color;
}

enum firefox_category firefox_category_of(enum thread_state state)
{
	switch (state) {
	case THREAD_RUNNING:
		return FIREFOX_RUNNING;
	case THREAD_RUNNABLE:
		return FIREFOX_WAITING_FOR_CPU;
	case THREAD_SLEEPING:
		return FIREFOX_SLEEPING;
	case THREAD_DISK:
		return FIREFOX_DISK;
	case THREAD_STOPPED:
		return FIREFOX_STOPPED;
	default:
		return FIREFOX_OTHER;
	}
}

void firefox_tables_init(struct firefox_tables *tables, const struct report *report)
{
	*tables = (struct firefox_tables){0};
	frame_table_init(&tables->frames, report);
}

void firefox_tables_deinit(struct firefox_tables *tables)
{
	frame_table_deinit(&tables->frames);
	free(tables->leaf_frames);
	free(tables->stacks);
	hash_index_deinit(&tables->frame_index);
	hash_index_deinit(&tables->stack_index);
	*tables = (struct firefox_tables){0};
}

static bool frame_equal(const void *context, uint32_t id, const void *key)
{
	const struct firefox_tables *tables = context;
	const struct firefox_frame *a = &tables->leaf_frames[id], *b = key;

	return a->frame == b->frame && a->category == b->category;
}

static uint32_t add_frame(struct firefox_tables *tables, uint32_t frame, int category)
{
	const struct firefox_frame key = {.frame = frame, .category = category};
	const uint64_t hash = hash_mix(frame, (uint64_t)(category + 1));
	uint32_t id = hash_index_find(&tables->frame_index, hash, frame_equal, tables, &key);

	if (id != HASH_NONE)
		return id;
	id = (uint32_t)tables->n_leaf_frames;
	*array_push(tables->leaf_frames, tables->n_leaf_frames, tables->leaf_frames_capacity) = key;
	hash_index_insert(&tables->frame_index, hash, id);
	return id;
}

static bool stack_equal(const void *context, uint32_t id, const void *key)
{
	const struct firefox_tables *tables = context;
	const struct firefox_stack *a = &tables->stacks[id], *b = key;

	return a->frame == b->frame && a->parent == b->parent;
}

static uint32_t add_stack(struct firefox_tables *tables, uint32_t frame, uint32_t parent)
{
	const struct firefox_stack key = {.frame = frame, .parent = parent};
	const uint64_t hash = hash_mix(frame, parent);
	uint32_t id = hash_index_find(&tables->stack_index, hash, stack_equal, tables, &key);

	if (id != HASH_NONE)
		return id;
	id = (uint32_t)tables->n_stacks;
	*array_push(tables->stacks, tables->n_stacks, tables->stacks_capacity) = key;
	hash_index_insert(&tables->stack_index, hash, id);
	return id;
}

static int category_of(const struct firefox_tables *tables, uint32_t frame,
                       const struct sample *sample, bool leaf)
{
	const struct frame_table *frames = &tables->frames;

	if (leaf)
		return (int)firefox_category_of(sample->state);
	return frames->functions[frames->frames[frame].function].kind == FRAME_KERNEL
	           ? (int)FIREFOX_KERNEL
	           : -1;
}

uint32_t firefox_tables_stack(struct firefox_tables *tables, const struct sample *sample)
{
	uint32_t stack = NO_PARENT;
	size_t n;
	const uint32_t *frames = frame_table_stack(&tables->frames, sample, &n);

	for (size_t i = 0; i < n; i++) {
		const int category = category_of(tables, frames[i], sample, i + 1 == n);
		stack = add_stack(tables, add_frame(tables, frames[i], category), stack);
	}
	return stack;
}

// Writes a column of `n` equal numbers; INT64_MIN stands for null.
static void put_constant(struct json *json, const char *key, size_t n, int64_t value)
{
	json_key_open(json, key, '[');
	for (size_t i = 0; i < n; i++) {
		if (value == INT64_MIN)
			json_null(json);
		else
			json_int(json, value);
	}
	json_close(json, ']');
}

static void put_nulls(struct json *json, const char *key, size_t n)
{
	put_constant(json, key, n, INT64_MIN);
}

static void put_falses(struct json *json, const char *key, size_t n)
{
	json_key_open(json, key, '[');
	for (size_t i = 0; i < n; i++)
		json_bool(json, false);
	json_close(json, ']');
}

static void put_stack_table(const struct firefox_tables *tables, struct json *json)
{
	const size_t n = tables->n_stacks;

	json_key_open(json, "stackTable", '{');
	json_key_open(json, "frame", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, tables->stacks[i].frame);
	json_close(json, ']');
	json_key_open(json, "prefixOffset", '[');
	for (size_t i = 0; i < n; i++) {
		const uint32_t parent = tables->stacks[i].parent;
		json_int(json, parent == NO_PARENT ? 0 : (int64_t)i - parent);
	}
	json_close(json, ']');
	json_key_int(json, "length", (int64_t)n);
	json_close(json, '}');
}

static const struct frame *frame_at(const struct firefox_tables *tables, size_t i)
{
	return &tables->frames.frames[tables->leaf_frames[i].frame];
}

static void put_frame_table(const struct firefox_tables *tables, struct json *json)
{
	const size_t n = tables->n_leaf_frames;

	json_key_open(json, "frameTable", '{');
	json_key_open(json, "func", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, frame_at(tables, i)->function);
	json_close(json, ']');
	json_key_open(json, "category", '[');
	for (size_t i = 0; i < n; i++) {
		if (tables->leaf_frames[i].category < 0)
			json_null(json);
		else
			json_int(json, tables->leaf_frames[i].category);
	}
	json_close(json, ']');
	json_key_open(json, "line", '[');
	for (size_t i = 0; i < n; i++) {
		if (frame_at(tables, i)->line)
			json_int(json, frame_at(tables, i)->line);
		else
			json_null(json);
	}
	json_close(json, ']');
	put_constant(json, "subcategory", n, 0);
	put_constant(json, "address", n, -1);
	put_constant(json, "inlineDepth", n, 0);
	put_constant(json, "innerWindowID", n, 0);
	put_nulls(json, "column", n);
	put_nulls(json, "nativeSymbol", n);
	put_nulls(json, "originalLocation", n);
	json_key_int(json, "length", (int64_t)n);
	json_close(json, '}');
}

// Numbers the modules that have functions: each is a library and a resource. Returns their numbers
// by the module's name in the strings, -1 for other strings. *ret_modules has those names; the
// caller frees both.
static int *number_modules(const struct firefox_tables *tables, uint32_t **ret_modules,
                           size_t *ret_n)
{
	const struct frame_table *frames = &tables->frames;
	int *numbers = memory_alloc_zeroed(frames->strings.count + 1, sizeof(*numbers));
	uint32_t *modules = NULL;
	size_t n = 0, capacity = 0;

	for (size_t i = 0; i < frames->strings.count; i++)
		numbers[i] = -1;
	for (size_t i = 0; i < frames->n_functions; i++) {
		const uint32_t module = frames->functions[i].module;
		if (numbers[module] >= 0 || !frame_table_string(frames, module)[0])
			continue;
		numbers[module] = (int)n;
		*array_push(modules, n, capacity) = module;
	}
	*ret_modules = modules;
	*ret_n = n;
	return numbers;
}

static void put_func_table(const struct firefox_tables *tables, const int *resources,
                           const int *sources, struct json *json)
{
	const struct frame_table *frames = &tables->frames;
	const size_t n = frames->n_functions;

	json_key_open(json, "funcTable", '{');
	json_key_open(json, "name", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, frames->functions[i].name);
	json_close(json, ']');
	put_falses(json, "isJS", n);
	put_falses(json, "relevantForJS", n);
	json_key_open(json, "resource", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, resources[frames->functions[i].module]);
	json_close(json, ']');
	json_key_open(json, "source", '[');
	for (size_t i = 0; i < n; i++) {
		if (sources[frames->functions[i].file] < 0)
			json_null(json);
		else
			json_int(json, sources[frames->functions[i].file]);
	}
	json_close(json, ']');
	json_key_open(json, "lineNumber", '[');
	for (size_t i = 0; i < n; i++) {
		if (frames->functions[i].start_line)
			json_int(json, frames->functions[i].start_line);
		else
			json_null(json);
	}
	json_close(json, ']');
	put_nulls(json, "columnNumber", n);
	put_nulls(json, "originalLocation", n);
	json_key_int(json, "length", (int64_t)n);
	json_close(json, '}');
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void put_libs(const struct firefox_tables *tables, const uint32_t *modules, size_t n,
                     struct json *json)
{
	json_key_open(json, "libs", '[');
	for (size_t i = 0; i < n; i++) {
		const char *path = frame_table_string(&tables->frames, modules[i]);
		const char *name = base_name(path);
		json_open(json, '{');
		json_key_string(json, "name", name);
		json_key_string(json, "path", path);
		json_key_string(json, "debugName", name);
		json_key_string(json, "debugPath", path);
		json_key_string(json, "breakpadId", "");
		json_key(json, "codeId");
		json_null(json);
		json_key_string(json, "arch", "");
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_resource_table(struct firefox_tables *tables, const uint32_t *modules, size_t n,
                               struct json *json)
{
	json_key_open(json, "resourceTable", '{');
	json_key_open(json, "lib", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, (int64_t)i);
	json_close(json, ']');
	json_key_open(json, "name", '[');
	for (size_t i = 0; i < n; i++)
		json_int(json, string_table_intern(
		                   &tables->frames.strings,
		                   base_name(frame_table_string(&tables->frames, modules[i]))));
	json_close(json, ']');
	put_nulls(json, "host", n);
	put_constant(json, "type", n, RESOURCE_LIBRARY);
	json_key_int(json, "length", (int64_t)n);
	json_close(json, '}');
}

// Writes the table of source files. Returns their numbers by the file's name in the strings, -1 for
// other strings; the caller frees.
static int *put_sources(const struct firefox_tables *tables, struct json *json)
{
	const struct frame_table *frames = &tables->frames;
	int *numbers = memory_alloc_zeroed(frames->strings.count + 1, sizeof(*numbers));
	int n = 0;

	for (size_t i = 0; i < frames->strings.count; i++)
		numbers[i] = -1;
	json_key_open(json, "sources", '{');
	json_key_open(json, "filename", '[');
	for (size_t i = 0; i < frames->n_functions; i++) {
		const uint32_t file = frames->functions[i].file;
		if (numbers[file] >= 0 || !frame_table_string(frames, file)[0])
			continue;
		json_int(json, file);
		numbers[file] = n++;
	}
	json_close(json, ']');
	put_nulls(json, "id", (size_t)n);
	put_nulls(json, "startLine", (size_t)n);
	put_nulls(json, "startColumn", (size_t)n);
	put_nulls(json, "sourceMapURL", (size_t)n);
	put_nulls(json, "content", (size_t)n);
	json_key_int(json, "length", n);
	json_close(json, '}');
	return numbers;
}

// Writes a table without rows.
static void put_empty_table(struct json *json, const char *key, const char *const *columns)
{
	json_key_open(json, key, '{');
	for (; *columns; columns++) {
		json_key_open(json, *columns, '[');
		json_close(json, ']');
	}
	json_key_int(json, "length", 0);
	json_close(json, '}');
}

void firefox_tables_put(struct firefox_tables *tables, struct json *json)
{
	static const char *const native_columns[] = {"libIndex", "address", "name", "functionSize",
	                                             NULL};
	static const char *const location_columns[] = {"source", "line", "column", NULL};
	uint32_t *modules;
	size_t n_modules;
	int *resources = number_modules(tables, &modules, &n_modules);

	put_libs(tables, modules, n_modules, json);
	json_key_open(json, "shared", '{');
	int *sources = put_sources(tables, json);
	put_stack_table(tables, json);
	put_frame_table(tables, json);
	put_func_table(tables, resources, sources, json);
	put_resource_table(tables, modules, n_modules, json);
	put_empty_table(json, "nativeSymbols", native_columns);
	put_empty_table(json, "sourceLocationTable", location_columns);
	json_key_open(json, "stringArray", '[');
	for (size_t i = 0; i < tables->frames.strings.count; i++)
		json_string(json, frame_table_string(&tables->frames, (uint32_t)i));
	json_close(json, ']');
	json_close(json, '}');
	free(sources);
	free(resources);
	free(modules);
}
