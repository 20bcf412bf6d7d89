// SPDX-License-Identifier: MIT
#include "record_names.h"

#include "frame_names.h"
#include "module.h"
#include "record_block.h"
#include "symbolize.h"

enum { LIST_BYTES = 1 << 16 }; // of a record: then another one begins

static void put_function(struct protobuf *record, const struct function *function)
{
	record_put_text(record, function->name);
	record_put_text(record, function->system_name ? function->system_name : "");
	record_put_text(record, function->file ? function->file : "");
	protobuf_varint(record, function->start_line);
}

void record_put_functions(struct protobuf *to, const struct symbols *symbols, size_t from,
                          size_t after)
{
	struct protobuf record = {0};

	if (from == after)
		return;
	protobuf_varint(&record, from);
	for (size_t i = from; i < after; i++)
		put_function(&record, &symbols->functions[i]);
	record_put(to, RECORD_FUNCTIONS, &record);
	protobuf_deinit(&record);
}

void record_put_frame_functions(struct protobuf *to, struct protobuf *record,
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

void record_put_lines(struct protobuf *record, const struct symbols *symbols, size_t location)
{
	const struct location_lines *lines = &symbols->locations[location];

	protobuf_varint(record, location);
	protobuf_varint(record, lines->count);
	for (uint32_t i = 0; i < lines->count; i++) {
		const struct line *line = &symbols->lines[lines->first + i];
		protobuf_varint(record, line->function);
		protobuf_varint(record, line->line);
	}
}

size_t record_functions_of(const struct symbols *symbols, size_t location, size_t n_functions)
{
	const struct location_lines *lines = &symbols->locations[location];

	for (uint32_t i = 0; i < lines->count; i++)
		if (symbols->lines[lines->first + i].function >= n_functions)
			n_functions = symbols->lines[lines->first + i].function + 1;
	return n_functions;
}
