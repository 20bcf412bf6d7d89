// SPDX-License-Identifier: MIT
#include "pprof_encode.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "memory.h"
#include "pprof_encoder.h"
#include "pprof_rows.h"

#define CUT_NAME "[truncated: more frames than the server takes]"

struct encoder {
	struct pprof_encoder file;
	const struct pprof_rows *rows;
	const struct pprof_data *data;
	const struct pprof_encoding *encoding;
	// One location and function more than there are: where the rest of a stack would be.
	struct pprof_ids locations, functions, mappings;
};

static const char *text(const struct encoder *encoder, uint32_t number)
{
	return pprof_data_string(encoder->data, number);
}

// Returns the file's number of one of the data's strings.
static uint32_t string(struct encoder *encoder, uint32_t number)
{
	return pprof_string(&encoder->file, text(encoder, number));
}

static void put_type(struct encoder *encoder, uint32_t field, const struct pprof_type *type)
{
	pprof_put_type(&encoder->file, field, text(encoder, type->type), text(encoder, type->unit));
}

static void put_header(struct encoder *encoder)
{
	const struct pprof_data *data = encoder->data;
	struct pprof_encoder *file = &encoder->file;

	for (size_t i = 0; i < data->n_types; i++)
		put_type(encoder, PROFILE_SAMPLE_TYPE, &data->types[i]);
	put_type(encoder, PROFILE_PERIOD_TYPE, &data->period_type);
	pprof_put_int(file, PROFILE_PERIOD, (uint64_t)data->period);
	pprof_put_int(file, PROFILE_TIME_NANOS, (uint64_t)data->time_ns);
	pprof_put_int(file, PROFILE_DURATION_NANOS, (uint64_t)data->duration_ns);
	pprof_put_int(file, PROFILE_DEFAULT_SAMPLE_TYPE, string(encoder, data->default_type));
	if (data->n_mappings > 0)
		pprof_id(&encoder->mappings, 0); // the program's own comes first
}

static void put_row(struct encoder *encoder, const struct pprof_row *row)
{
	const uint64_t *locations = encoder->data->location_ids + row->first_location;
	const struct pprof_rows *rows = encoder->rows;
	struct pprof_encoder *file = &encoder->file;

	for (uint32_t i = 0; i < row->n_locations; i++)
		protobuf_varint(&file->packed, pprof_id(&encoder->locations, locations[i]));
	if (row->cut)
		protobuf_varint(&file->packed,
		                pprof_id(&encoder->locations, encoder->data->n_locations));
	pprof_add_packed(file, SAMPLE_LOCATION_ID);
	for (size_t i = 0; i < encoder->data->n_types; i++)
		protobuf_varint(&file->packed, (uint64_t)row->values[i]);
	pprof_add_packed(file, SAMPLE_VALUE);
	for (size_t i = 0; i < rows->n_keys && encoder->encoding->labels; i++)
		if (row->labels[i])
			pprof_add_label(file, text(encoder, rows->keys[i]),
			                text(encoder, row->labels[i]), 0);
	pprof_put_message(file, PROFILE_SAMPLE);
}

// True if the name is one that frame_name_unresolved has made, [module+0x1f], and the server can
// find a better one.
static bool is_left_to_server(const struct encoder *encoder, const struct pprof_location *location)
{
	const struct pprof_data *data = encoder->data;

	if (!encoder->encoding->server_names || location->n_lines != 1 || !location->mapping ||
	    data->mappings[location->mapping - 1].build_id == 0)
		return false;
	const struct pprof_function *function =
	    &data->functions[data->lines[location->first_line].function];
	const char *name = pprof_data_string(data, function->name);
	const char *offset = strrchr(name, '+');
	return name[0] == '[' && function->system_name == 0 && function->file == 0 && offset &&
	       strncmp(offset, "+0x", 3) == 0 &&
	       strcmp(offset + 3 + strspn(offset + 3, "0123456789abcdef"), "]") == 0;
}

static void add_line(struct encoder *encoder, size_t function, int64_t line)
{
	pprof_add_line(&encoder->file, pprof_id(&encoder->functions, function), (uint64_t)line);
}

static void add_location(struct encoder *encoder, const struct pprof_location *location)
{
	struct protobuf *message = &encoder->file.message;

	if (location->mapping)
		protobuf_int(message, LOCATION_MAPPING_ID,
		             pprof_id(&encoder->mappings, location->mapping - 1));
	protobuf_int(message, LOCATION_ADDRESS, location->address);
	const uint32_t n_lines = is_left_to_server(encoder, location) ? 0 : location->n_lines;
	for (uint32_t i = 0; i < n_lines; i++) {
		const struct pprof_line *line = &encoder->data->lines[location->first_line + i];
		add_line(encoder, line->function, line->line);
	}
}

static void put_location(struct encoder *encoder, size_t id, uint32_t position)
{
	const struct pprof_data *data = encoder->data;

	protobuf_int(&encoder->file.message, LOCATION_ID, id);
	if (position < data->n_locations)
		add_location(encoder, &data->locations[position]);
	else
		add_line(encoder, data->n_functions, 0);
	pprof_put_message(&encoder->file, PROFILE_LOCATION);
}

static void put_function(struct encoder *encoder, size_t id, uint32_t position)
{
	const struct pprof_data *data = encoder->data;
	struct pprof_function function = {.id = id};

	if (position < data->n_functions) {
		const struct pprof_function *known = &data->functions[position];
		function.name = string(encoder, known->name);
		function.system_name = string(encoder, known->system_name);
		function.file = string(encoder, known->file);
		function.start_line = known->start_line;
	} else {
		function.name = pprof_string(&encoder->file, CUT_NAME);
	}
	pprof_put_function(&encoder->file, &function);
}

static void put_mapping(struct encoder *encoder, size_t id, uint32_t position)
{
	struct pprof_mapping mapping = encoder->data->mappings[position];

	mapping.id = id;
	mapping.file = string(encoder, mapping.file);
	mapping.build_id = string(encoder, mapping.build_id);
	pprof_put_mapping(&encoder->file, &mapping);
}

static void encode(struct encoder *encoder, size_t from, size_t to)
{
	put_header(encoder);
	for (size_t i = from; i < to; i++)
		put_row(encoder, &encoder->rows->items[i]);
	for (size_t i = 0; i < encoder->locations.count; i++)
		put_location(encoder, i + 1, encoder->locations.positions[i]);
	for (size_t i = 0; i < encoder->functions.count; i++)
		put_function(encoder, i + 1, encoder->functions.positions[i]);
	for (size_t i = 0; i < encoder->mappings.count; i++)
		put_mapping(encoder, i + 1, encoder->mappings.positions[i]);
	pprof_encoder_finish(&encoder->file);
	pprof_ids_deinit(&encoder->locations);
	pprof_ids_deinit(&encoder->functions);
	pprof_ids_deinit(&encoder->mappings);
}

struct error *pprof_encode(const struct pprof_rows *rows, size_t from, size_t to,
                           const struct pprof_encoding *encoding, struct pprof_file *ret)
{
	_cleanup_free_ struct encoder *encoder = memory_alloc_zeroed(1, sizeof(*encoder));
	_cleanup_free_ char *bytes = NULL;
	size_t size = 0;

	FILE *stream = open_memstream(&bytes, &size);
	if (!stream)
		return error_create(EXIT_STATUS_OUTPUT, "no memory for a profile to be sent");
	encoder->rows = rows;
	encoder->data = rows->data;
	encoder->encoding = encoding;
	struct error *error = pprof_encoder_init(&encoder->file, stream);
	if (!error)
		encode(encoder, from, to);
	const bool written = fflush(stream) == 0 && !ferror(stream);
	fclose(stream);
	if (!error && !written)
		error = error_create(EXIT_STATUS_OUTPUT, "no memory for a profile to be sent");
	if (error)
		return error;
	*ret = (struct pprof_file){
	    .bytes = (uint8_t *)take_pointer(bytes),
	    .size = size,
	    .raw_size = encoder->file.raw_size,
	};
	return NULL;
}
