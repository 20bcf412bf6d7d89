// SPDX-License-Identifier: MIT
#include "record_news.h"

#include <string.h>

#include "frame_names.h"
#include "labels.h"
#include "memory.h"
#include "module.h"
#include "perf_map.h"
#include "profile.h"
#include "record_block.h"

enum { LIST_BYTES = 1 << 16 }; // of a record: then another one begins

// Appends records of the functions from *n_written on that a runtime has named, and adds how many
// to *n_written; nothing if the module is not a runtime's. `record` is an empty buffer, used to
// build them.
static void record_put_frame_functions(struct protobuf *to, struct protobuf *record,
                                       const struct module *module, size_t *n_written)
{
	const struct frame_names *names = module->frame_names;

	while (names && *n_written < names->n_functions) {
		protobuf_varint(record, module->index);
		protobuf_varint(record, *n_written + 1);
		while (*n_written < names->n_functions && record->size < LIST_BYTES) {
			const struct frame_function *function = &names->functions[(*n_written)++];
			// A damaged recording that was read leaves out numbers.
			record_put_text(record, function->name ?: "");
			record_put_text(record, function->file ?: "");
			protobuf_varint(record, function->start_line);
		}
		record_put(to, RECORD_FRAME_FUNCTIONS, record);
	}
}

static const char *unreadable_of(const struct module *module)
{
	const char *text = module->perf_map ? perf_map_unreadable(module->perf_map) : NULL;

	return text ? text : module->unreadable;
}

void record_put_module(struct protobuf *to, struct protobuf *record, uint32_t id,
                       const struct module *module, bool is_program)
{
	const char *unreadable = unreadable_of(module);

	protobuf_varint(record, id);
	protobuf_varint(record, module->kind);
	protobuf_varint(record, is_program);
	protobuf_varint(record, module->device);
	protobuf_varint(record, module->inode);
	protobuf_varint(record, module->build_id_size);
	record_put_bytes(record, module->build_id, module->build_id_size);
	record_put_text(record, module->path);
	if (unreadable)
		record_put_text(record, unreadable);
	record_put(to, RECORD_MODULE, record);
}

static void put_module(struct record_writer *writer, uint32_t id)
{
	const struct module *module = writer->modules->items[id];

	record_put_module(&writer->block, &writer->record, id, module,
	                  module == writer->modules->program);
	writer->unreadable[id] = unreadable_of(module);
	writer->has_build_id[id] = module->build_id_size > 0;
}

static void put_mappings(struct record_writer *writer, uint32_t id)
{
	const struct module *module = writer->modules->items[id];

	for (size_t i = writer->n_mappings[id]; i < module->n_mappings; i++) {
		const struct module_mapping *mapping = &module->mappings[i];
		protobuf_varint(&writer->record, id);
		protobuf_varint(&writer->record, mapping->start);
		protobuf_varint(&writer->record, mapping->end);
		protobuf_varint(&writer->record, mapping->file_offset);
		protobuf_varint(&writer->record, mapping->bias);
		record_put(&writer->block, RECORD_MAPPING, &writer->record);
	}
	writer->n_mappings[id] = module->n_mappings;
}

void record_put_modules(struct record_writer *writer)
{
	const size_t count = writer->modules->count;

	writer->n_mappings = memory_grow(writer->n_mappings, &writer->modules_capacity, count,
	                                 sizeof(*writer->n_mappings));
	writer->has_build_id = memory_grow(writer->has_build_id, &writer->build_ids_capacity, count,
	                                   sizeof(*writer->has_build_id));
	writer->n_frame_functions =
	    memory_grow(writer->n_frame_functions, &writer->frame_functions_capacity, count,
	                sizeof(*writer->n_frame_functions));
	writer->unreadable = memory_grow(writer->unreadable, &writer->unreadable_capacity, count,
	                                 sizeof(*writer->unreadable));
	for (uint32_t i = 0; i < count; i++) {
		const bool is_new = i >= writer->n_modules;
		if (is_new)
			writer->n_mappings[i] = writer->n_frame_functions[i] = 0;
		const struct module *module = writer->modules->items[i];
		// A file is opened, and its build ID read, when its code is first unwound.
		if (is_new || (!writer->has_build_id[i] && module->build_id_size) ||
		    writer->unreadable[i] != unreadable_of(module) ||
		    (module == writer->modules->program && module != writer->program))
			put_module(writer, i);
		put_mappings(writer, i);
		record_put_frame_functions(&writer->block, &writer->record, module,
		                           &writer->n_frame_functions[i]);
	}
	writer->n_modules = count;
	writer->program = writer->modules->program;
}

void record_put_locations(struct record_writer *writer)
{
	const struct profile *profile = writer->profile;

	while (writer->n_locations < profile->n_locations) {
		uint64_t last = 0;
		protobuf_varint(&writer->record, writer->n_locations);
		while (writer->n_locations < profile->n_locations &&
		       writer->record.size < RECORD_LIST_BYTES) {
			const struct location *location =
			    &profile->locations[writer->n_locations++];
			protobuf_varint(&writer->record,
			                (uint64_t)location->module << 1 | (location->code != 0));
			if (location->code)
				protobuf_varint(&writer->record, location->code);
			record_put_signed(&writer->record, (int64_t)(location->address - last));
			last = location->address;
		}
		record_put(&writer->block, RECORD_LOCATIONS, &writer->record);
	}
}

static const struct perf_map *map_of(const struct record_writer *writer, uint32_t location)
{
	const uint32_t module = writer->profile->locations[location].module;

	return writer->modules->items[module]->perf_map;
}

// False if the name is not known yet.
static bool put_code_name(struct record_writer *writer, uint32_t id)
{
	const struct location *location = &writer->profile->locations[id];
	const struct perf_map *map = map_of(writer, id);
	const uint32_t code =
	    location->code ? location->code : perf_map_find(map, location->address);
	const char *name = perf_map_name(map, code);

	if (!name)
		return false;
	protobuf_varint(&writer->record, id);
	protobuf_varint(&writer->record, code);
	record_put_text(&writer->record, name);
	record_put(&writer->block, RECORD_CODE, &writer->record);
	return true;
}

static size_t count_codes(const struct modules *modules)
{
	size_t n = 0;

	for (size_t i = 0; i < modules->count; i++)
		if (modules->items[i]->perf_map)
			n += perf_map_size(modules->items[i]->perf_map);
	return n;
}

void record_put_code_names(struct record_writer *writer)
{
	const size_t n_codes = count_codes(writer->modules), n_before = writer->n_nameless;

	if (n_codes != writer->n_codes)
		writer->n_nameless = 0;
	for (size_t i = writer->n_nameless; i < n_before; i++)
		if (!put_code_name(writer, writer->nameless[i]))
			writer->nameless[writer->n_nameless++] = writer->nameless[i];
	writer->n_codes = n_codes;
	for (; writer->n_code_locations < writer->n_locations; writer->n_code_locations++) {
		const uint32_t id = (uint32_t)writer->n_code_locations;
		if (map_of(writer, id) && !put_code_name(writer, id))
			*array_push(writer->nameless, writer->n_nameless,
			            writer->nameless_capacity) = id;
	}
}

// How many frames two stacks have in common, counted from the root.
static uint32_t common_frames(const struct profile *profile, const struct stack *a,
                              const struct stack *b)
{
	const uint32_t *ids = profile->location_ids; // NULL while all stacks are empty
	const size_t a_end = (size_t)a->first + a->n_frames, b_end = (size_t)b->first + b->n_frames;
	uint32_t n = 0;

	while (n < a->n_frames && n < b->n_frames && ids[a_end - 1 - n] == ids[b_end - 1 - n])
		n++;
	return n;
}

void record_put_stacks(struct record_writer *writer)
{
	const struct profile *profile = writer->profile;

	while (writer->n_stacks < profile->n_stacks) {
		const struct stack *last = NULL;
		protobuf_varint(&writer->record, writer->n_stacks);
		while (writer->n_stacks < profile->n_stacks &&
		       writer->record.size < RECORD_LIST_BYTES) {
			const struct stack *stack = &profile->stacks[writer->n_stacks++];
			const uint32_t common = last ? common_frames(profile, last, stack) : 0;
			protobuf_varint(&writer->record,
			                (uint64_t)stack->end << 2 | stack->guessed);
			protobuf_varint(&writer->record, common);
			protobuf_varint(&writer->record, stack->n_frames - common);
			for (uint32_t i = 0; i < stack->n_frames - common; i++)
				protobuf_varint(&writer->record,
				                profile->location_ids[stack->first + i]);
			last = stack;
		}
		record_put(&writer->block, RECORD_STACKS, &writer->record);
	}
}

size_t record_meaning_size(const struct wait *wait)
{
	return wait->meaning ? strlen(wait->meaning) : 0;
}

void record_put_wait(struct record_writer *writer, uint32_t id)
{
	const struct wait *wait = &writer->profile->waits[id];

	protobuf_varint(&writer->record, id);
	record_put_signed(&writer->record, wait->syscall);
	record_put_text(&writer->record, wait->descriptor);
	record_put_text(&writer->record, wait->meaning ? wait->meaning : "");
	record_put_text(&writer->record, wait->frames);
	if (wait->reason[0])
		record_put_text(&writer->record, wait->reason);
	record_put(&writer->block, RECORD_WAIT, &writer->record);
	writer->meaning_sizes = memory_grow(writer->meaning_sizes, &writer->meanings_capacity,
	                                    id + 1, sizeof(*writer->meaning_sizes));
	writer->meaning_sizes[id] = record_meaning_size(wait);
}

void record_put_labels(struct record_writer *writer, uint32_t id)
{
	const char *labels = writer->profile->labels[id];
	struct label label = {0};

	protobuf_varint(&writer->record, id);
	while (labels_next(&labels, &label)) {
		record_put_text(&writer->record, label.key);
		record_put_text(&writer->record, label.value);
	}
	record_put(&writer->block, RECORD_LABELS, &writer->record);
}
