// SPDX-License-Identifier: MIT
// A pprof profile (any profiler's) as a page's tree. It has sums, not time: each place in the tree
// is one run, as with folded stacks.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "error.h"
#include "memory.h"
#include "own_code.h"
#include "page.h"
#include "pprof_data.h"
#include "text.h"

enum {
	MAX_BYTES = 1 << 30,
	MAX_DEPTH = 100000,  // frames of a stack, from the root; the others are left out
	MAX_STEPS = 1 << 28, // frames of all stacks
	MAX_UNIT_BYTES = 32,
};

struct frames {
	size_t first, count; // innermost first
};

struct reader {
	struct page *page;
	const struct pprof_data *data;
	struct frames *locations; // in the order of the data's locations
	uint32_t *frames;         // of all locations
	size_t n_frames, frames_capacity;
	size_t value; // index of the sample's value that is shown
	int64_t scale_ns;
	uint64_t n_steps, n_left_out;
};

static const char *string(const struct reader *reader, uint32_t number)
{
	return pprof_data_string(reader->data, number);
}

// Returns whether the function is of the program's own code, by what the profile says of it.
// Languages' frames have no mapping, or, as this profiler writes them, one in brackets.
static bool is_own(const struct reader *reader, const struct pprof_function *function,
                   const char *module)
{
	const struct code_place place = {
	    .kind = !module[0] || module[0] == '[' ? MODULE_RUNTIME : MODULE_FILE,
	    .path = module,
	    .name = string(reader, function->name),
	    .system_name = string(reader, function->system_name),
	    .file = string(reader, function->file),
	};

	return (place.kind == MODULE_FILE || place.file[0]) && own_code(&place);
}

static void add_frame(struct reader *reader, const struct pprof_location *location,
                      const struct pprof_line *line, uint32_t flags)
{
	static const struct pprof_function no_function;
	static const struct pprof_mapping no_mapping;
	const struct pprof_data *data = reader->data;
	struct page_tree *tree = &reader->page->tree;
	const struct pprof_function *function =
	    line ? &data->functions[line->function] : &no_function;
	const struct pprof_mapping *mapping =
	    location->mapping ? &data->mappings[location->mapping - 1] : &no_mapping;
	const char *module = string(reader, mapping->file), *name = string(reader, function->name);
	const char *slash = strrchr(module, '/');
	_cleanup_free_ char *address = NULL;

	if (!name[0])
		name = address = memory_printf("[%s%s0x%" PRIx64 "]", slash ? slash + 1 : module,
		                               module[0] ? "+" : "", location->address);
	const struct page_frame frame = {
	    .name = string_table_intern(&tree->names, name),
	    .file = string_table_intern(&tree->files, string(reader, function->file)),
	    .module = string_table_intern(&tree->modules, module),
	    .line = function->start_line > 0 && function->start_line <= INT32_MAX
	                ? (uint32_t)function->start_line
	                : 0,
	    .flags = flags | (is_own(reader, function, module) ? PAGE_OWN : 0),
	};
	*array_push(reader->frames, reader->n_frames, reader->frames_capacity) =
	    page_tree_frame(tree, &frame);
}

// Adds the frames of a location's lines. Inlined calls come first, before the function that they
// were inlined into.
static void add_frames(struct reader *reader, size_t i)
{
	const struct pprof_location *location = &reader->data->locations[i];
	const struct pprof_line *lines = reader->data->lines + location->first_line;
	struct frames *frames = &reader->locations[i];

	frames->first = reader->n_frames;
	for (size_t j = 0; j < location->n_lines; j++)
		add_frame(reader, location, &lines[j],
		          j + 1 < location->n_lines ? PAGE_INLINED : 0);
	if (location->n_lines == 0)
		add_frame(reader, location, NULL, 0);
	frames->count = reader->n_frames - frames->first;
}

// Chooses which value of the samples is shown, and finds its unit.
static void choose_value(struct reader *reader)
{
	static const struct {
		const char *unit;
		int64_t ns;
	} units[] = {
	    {"nanoseconds", 1},
	    {"microseconds", 1000},
	    {"milliseconds", NS_PER_MS},
	    {"seconds", NS_PER_SECOND},
	};
	struct page *page = reader->page;

	reader->value = pprof_data_type(reader->data, string(reader, reader->data->default_type));
	const struct pprof_type *type = &reader->data->types[reader->value];
	const char *unit = string(reader, type->unit);
	reader->scale_ns = page->count_ns = PAGE_UNIT_NS;
	for (size_t i = 0; i < array_size(units); i++)
		if (strcmp(unit, units[i].unit) == 0) {
			reader->scale_ns = units[i].ns;
			page->count_ns = NS_PER_SECOND;
			page->unit = memory_strdup("seconds");
			return;
		}
	if (strcmp(unit, "count") == 0) // the type says what is counted, and so more than "count"
		unit = string(reader, type->type);
	page->unit = text_clean(unit, strlen(unit), MAX_UNIT_BYTES);
}

static uint32_t add_stack(struct reader *reader, const struct pprof_sample *sample)
{
	const uint64_t *locations = reader->data->location_ids + sample->first_location;
	struct page_tree *tree = &reader->page->tree;
	uint32_t node = PAGE_ROOT;
	size_t depth = 0;

	for (size_t i = sample->n_locations; i-- > 0 && depth < MAX_DEPTH;) {
		const struct frames *frames = &reader->locations[locations[i]];
		for (size_t j = frames->count; j-- > 0 && depth < MAX_DEPTH; depth++)
			node = page_tree_child(tree, node, reader->frames[frames->first + j]);
	}
	if (depth == MAX_DEPTH)
		node = page_add_cut(reader->page, node, MAX_DEPTH);
	reader->n_steps += depth + 1;
	return node;
}

static struct error *add_samples(struct reader *reader, const char *name)
{
	const struct pprof_data *data = reader->data;

	for (size_t i = 0; i < data->n_samples; i++) {
		const int64_t value = data->samples[i].values[reader->value];
		reader->n_left_out += value < 0;
		if (value <= 0)
			continue;
		page_add_self(reader->page, add_stack(reader, &data->samples[i]), value,
		              reader->scale_ns);
		if (reader->n_steps > MAX_STEPS)
			return error_create(EXIT_STATUS_TARGET, "%s is too large", name);
	}
	page_add_self_runs(reader->page);
	return reader->page->n_runs > 0
	           ? NULL
	           : error_create(EXIT_STATUS_TARGET, "%s has no samples", name);
}

struct error *page_add_pprof(struct page *page, const char *name, const uint8_t *bytes, size_t size,
                             uint64_t *ret_left_out)
{
	struct pprof_data data;
	struct error *error = pprof_data_read(name, bytes, size, MAX_BYTES, &data);

	if (error)
		return error;
	struct reader reader = {
	    .page = page,
	    .data = &data,
	    .locations = memory_alloc_zeroed(data.n_locations + 1, sizeof(*reader.locations)),
	};
	for (size_t i = 0; i < data.n_locations; i++)
		add_frames(&reader, i);
	choose_value(&reader);
	error = add_samples(&reader, name);
	*ret_left_out = reader.n_left_out;
	free(reader.locations);
	free(reader.frames);
	pprof_data_deinit(&data);
	return error;
}
