// SPDX-License-Identifier: MIT
#include "record_copy.h"

#include <stdbool.h>
#include <stdlib.h>

#include "memory.h"
#include "module.h"
#include "protobuf.h"
#include "record.h"
#include "record_block.h"
#include "record_news.h"
#include "recording.h"
#include "symbolize.h"
#include "writing.h"

enum { END_BYTES = 4096 }; // of max_bytes, for the end

void record_copy_deinit(struct record_copy *copy)
{
	free(copy->modules.ids);
	free(copy->locations.ids);
}

void record_copy_add(struct record_copy *copy, const void *bytes, size_t size)
{
	if (copy->failed)
		return;
	copy->failed = writing_write(copy->fd, bytes, size);
	copy->written_bytes += size;
	copy->n_parts++;
}

void record_copy_take_numbers(struct record_copy *copy, struct id_map *modules,
                              struct id_map *locations)
{
	copy->modules = *modules;
	copy->locations = *locations;
	*modules = *locations = (struct id_map){0};
}

static bool has_room(const struct record_copy *copy, size_t bytes)
{
	return !copy->max_bytes ||
	       copy->written_bytes + RECORD_BLOCK_HEADER_BYTES + bytes + END_BYTES <=
	           copy->max_bytes;
}

// Writes the records as a block, and empties the buffer.
static void write_block(struct record_copy *copy, struct protobuf *records)
{
	struct protobuf block = {0};

	if (records->size == 0)
		return;
	record_put_block(&block, copy->n_parts - 1, records);
	record_copy_add(copy, block.bytes, block.size);
	protobuf_deinit(&block);
}

// Code that was made at run time has another module's name once its own names are found.
static void put_module_names(const struct record_copy *copy, const struct modules *modules,
                             struct protobuf *to)
{
	struct protobuf record = {0};

	for (uint32_t i = 0; i < copy->modules.count; i++) {
		const uint32_t id = copy->modules.ids[i];
		const struct module *module = id < modules->count ? modules->items[id] : NULL;
		if (module && module->kind == MODULE_ANONYMOUS)
			record_put_module(to, &record, i, module, module == modules->program);
	}
	protobuf_deinit(&record);
}

// The functions of the stream's location; count 0: it has no name.
static struct location_lines lines_of(const struct record_copy *copy, const struct symbols *symbols,
                                      size_t location)
{
	const uint32_t id = copy->locations.ids[location];

	return id < symbols->n_locations ? symbols->locations[id] : (struct location_lines){0};
}

static void put_functions(struct protobuf *to, const struct symbols *symbols, size_t from,
                          size_t after)
{
	struct protobuf record = {0};

	if (from == after)
		return;
	protobuf_varint(&record, from);
	for (size_t i = from; i < after; i++) {
		const struct function *function = &symbols->functions[i];
		record_put_text(&record, function->name);
		record_put_text(&record, function->system_name ?: "");
		record_put_text(&record, function->file ?: "");
		protobuf_varint(&record, function->start_line);
	}
	record_put(to, RECORD_FUNCTIONS, &record);
	protobuf_deinit(&record);
}

// Appends a location's lines. Returns how many functions are to be known before.
static size_t put_lines(struct protobuf *to, const struct symbols *symbols, size_t location,
                        const struct location_lines *lines, size_t n_functions)
{
	protobuf_varint(to, location);
	protobuf_varint(to, lines->count);
	for (uint32_t i = 0; i < lines->count; i++) {
		const struct line *line = &symbols->lines[lines->first + i];
		protobuf_varint(to, line->function);
		protobuf_varint(to, line->line);
		if (line->function >= n_functions)
			n_functions = line->function + 1;
	}
	return n_functions;
}

// Appends as many names from the location `*next` on as a record takes, and the functions from
// *n_functions on that they need.
static void put_names(const struct record_copy *copy, const struct symbols *symbols, size_t *next,
                      size_t *n_functions, struct protobuf *to)
{
	struct protobuf lines = {0};
	const size_t first_function = *n_functions;

	for (; *next < copy->locations.count && lines.size < RECORD_LIST_BYTES; ++*next) {
		const struct location_lines named = lines_of(copy, symbols, *next);
		if (named.count > 0)
			*n_functions = put_lines(&lines, symbols, *next, &named, *n_functions);
	}
	put_functions(to, symbols, first_function, *n_functions);
	record_put(to, RECORD_LINES, &lines);
	protobuf_deinit(&lines);
}

static uint64_t count_named(const struct record_copy *copy, const struct symbols *symbols,
                            size_t from)
{
	uint64_t n = 0;

	for (; from < copy->locations.count; from++)
		n += lines_of(copy, symbols, from).count > 0;
	return n;
}

// Writes blocks of names: functions, and the locations that need no others. Returns how many
// locations' names are left out.
static uint64_t write_names(struct record_copy *copy, const struct recording *recording,
                            const struct symbols *symbols)
{
	struct protobuf block = {0};
	size_t n_functions = 0, next = 0;
	uint64_t n_dropped = 0;

	put_module_names(copy, &recording->modules, &block);
	while (next < copy->locations.count && n_dropped == 0) {
		const size_t first = next;
		put_names(copy, symbols, &next, &n_functions, &block);
		if (has_room(copy, block.size))
			write_block(copy, &block);
		else
			n_dropped = count_named(copy, symbols, first);
	}
	protobuf_deinit(&block);
	return n_dropped;
}

static void write_end(struct record_copy *copy, const struct recording *recording,
                      uint64_t n_dropped)
{
	struct protobuf block = {0}, record = {0};

	if (recording->full || n_dropped) {
		protobuf_varint(&record, RECORD_OVERFLOW_SIZE);
		protobuf_varint(&record, recording->full ? recording->dropped_samples : 0);
		protobuf_varint(&record, n_dropped);
		record_put(&block, RECORD_OVERFLOW, &record);
	}
	protobuf_varint(&record, (uint64_t)recording->profile.duration_ns);
	protobuf_varint(&record, recording->n_samples);
	record_put_text(&record, recording->comment ?: "");
	record_put(&block, RECORD_END, &record);
	write_block(copy, &block);
	protobuf_deinit(&block);
	protobuf_deinit(&record);
}

void record_copy_finish(struct record_copy *copy, const struct recording *recording,
                        const struct symbols *symbols)
{
	const uint64_t n_dropped = symbols ? write_names(copy, recording, symbols) : 0;

	if (recording->whole)
		write_end(copy, recording, n_dropped);
}
