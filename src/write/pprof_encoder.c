// SPDX-License-Identifier: MIT
#include "pprof_encoder.h"

#include <stdlib.h>

#include "memory.h"

struct error *pprof_encoder_init(struct pprof_encoder *encoder, FILE *stream)
{
	struct error *error = gzip_init(&encoder->gzip, stream);

	if (error)
		return error;
	encoder->raw_size = 0;
	encoder->strings = (struct string_table){0};
	encoder->message = encoder->part = encoder->packed = (struct protobuf){0};
	string_table_intern(&encoder->strings, ""); // must be the first
	return NULL;
}

static void put_part(struct pprof_encoder *encoder)
{
	gzip_write(&encoder->gzip, encoder->part.bytes, encoder->part.size);
	encoder->raw_size += encoder->part.size;
	protobuf_clear(&encoder->part);
}

void pprof_encoder_finish(struct pprof_encoder *encoder)
{
	for (size_t i = 0; i < encoder->strings.count; i++) {
		protobuf_string(&encoder->part, PROFILE_STRING_TABLE, encoder->strings.items[i]);
		put_part(encoder);
	}
	gzip_finish(&encoder->gzip);
	gzip_deinit(&encoder->gzip);
	string_table_deinit(&encoder->strings);
	protobuf_deinit(&encoder->message);
	protobuf_deinit(&encoder->part);
	protobuf_deinit(&encoder->packed);
}

uint32_t pprof_string(struct pprof_encoder *encoder, const char *text)
{
	return string_table_intern_clean(&encoder->strings, text);
}

uint32_t pprof_id(struct pprof_ids *ids, size_t position)
{
	while (ids->n_ids <= position)
		*array_push(ids->ids, ids->n_ids, ids->ids_capacity) = 0;
	if (ids->ids[position] == 0) {
		*array_push(ids->positions, ids->count, ids->capacity) = (uint32_t)position;
		ids->ids[position] = (uint32_t)ids->count;
	}
	return ids->ids[position];
}

void pprof_ids_deinit(struct pprof_ids *ids)
{
	free(ids->ids);
	free(ids->positions);
}

void pprof_put_message(struct pprof_encoder *encoder, uint32_t field)
{
	protobuf_message(&encoder->part, field, &encoder->message);
	protobuf_clear(&encoder->message);
	put_part(encoder);
}

void pprof_put_int(struct pprof_encoder *encoder, uint32_t field, uint64_t value)
{
	protobuf_int(&encoder->part, field, value);
	put_part(encoder);
}

void pprof_put_type(struct pprof_encoder *encoder, uint32_t field, const char *type,
                    const char *unit)
{
	protobuf_int(&encoder->message, VALUE_TYPE_TYPE, pprof_string(encoder, type));
	protobuf_int(&encoder->message, VALUE_TYPE_UNIT, pprof_string(encoder, unit));
	pprof_put_message(encoder, field);
}

void pprof_add_packed(struct pprof_encoder *encoder, uint32_t field)
{
	protobuf_message(&encoder->message, field, &encoder->packed);
	protobuf_clear(&encoder->packed);
}

static void add_part(struct pprof_encoder *encoder, uint32_t field)
{
	protobuf_message(&encoder->message, field, &encoder->part);
	protobuf_clear(&encoder->part);
}

void pprof_add_label(struct pprof_encoder *encoder, const char *key, const char *text,
                     uint64_t number)
{
	protobuf_int(&encoder->part, LABEL_KEY, pprof_string(encoder, key));
	if (text)
		protobuf_int(&encoder->part, LABEL_STR, pprof_string(encoder, text));
	else
		protobuf_int(&encoder->part, LABEL_NUM, number);
	add_part(encoder, SAMPLE_LABEL);
}

void pprof_add_line(struct pprof_encoder *encoder, uint32_t function_id, uint64_t line)
{
	protobuf_int(&encoder->part, LINE_FUNCTION_ID, function_id);
	protobuf_int(&encoder->part, LINE_LINE, line);
	add_part(encoder, LOCATION_LINE);
}

void pprof_put_function(struct pprof_encoder *encoder, const struct pprof_function *function)
{
	protobuf_int(&encoder->message, FUNCTION_ID, function->id);
	protobuf_int(&encoder->message, FUNCTION_NAME, function->name);
	protobuf_int(&encoder->message, FUNCTION_SYSTEM_NAME, function->system_name);
	protobuf_int(&encoder->message, FUNCTION_FILENAME, function->file);
	protobuf_int(&encoder->message, FUNCTION_START_LINE, (uint64_t)function->start_line);
	pprof_put_message(encoder, PROFILE_FUNCTION);
}

void pprof_put_mapping(struct pprof_encoder *encoder, const struct pprof_mapping *mapping)
{
	protobuf_int(&encoder->message, MAPPING_ID, mapping->id);
	protobuf_int(&encoder->message, MAPPING_MEMORY_START, mapping->start);
	protobuf_int(&encoder->message, MAPPING_MEMORY_LIMIT, mapping->limit);
	protobuf_int(&encoder->message, MAPPING_FILE_OFFSET, mapping->offset);
	protobuf_int(&encoder->message, MAPPING_FILENAME, mapping->file);
	protobuf_int(&encoder->message, MAPPING_BUILD_ID, mapping->build_id);
	for (size_t i = 0; i < array_size(mapping->has); i++)
		protobuf_int(&encoder->message, MAPPING_HAS_FUNCTIONS + (uint32_t)i,
		             mapping->has[i]);
	pprof_put_message(encoder, PROFILE_MAPPING);
}
