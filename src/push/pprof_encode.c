// SPDX-License-Identifier: MIT
#include "pprof_encode.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "gzip.h"
#include "memory.h"
#include "pprof_fields.h"
#include "pprof_rows.h"
#include "protobuf.h"

#define CUT_NAME "[truncated: more frames than the server takes]"

// The file's numbers of a table's items: 1..n in the order in which they were first needed.
struct numbering {
	uint32_t *numbers; // by position; 0: none yet
	uint32_t *order;
	size_t count;
};

struct encoder {
	const struct pprof_rows *rows;
	const struct pprof_data *data;
	const struct pprof_encoding *encoding;
	struct gzip gzip;
	size_t raw_size;
	struct protobuf message, part, packed;
	struct string_table strings;
	// One location and function more than there are: where the rest of a stack would be.
	struct numbering locations, functions, mappings;
};

static void numbering_init(struct numbering *numbering, size_t n)
{
	numbering->numbers = memory_alloc_zeroed(n, sizeof(*numbering->numbers));
	numbering->order = memory_alloc_zeroed(n, sizeof(*numbering->order));
}

static void numbering_deinit(struct numbering *numbering)
{
	free(numbering->numbers);
	free(numbering->order);
}

static uint32_t number_of(struct numbering *numbering, uint64_t position)
{
	if (!numbering->numbers[position]) {
		numbering->order[numbering->count++] = (uint32_t)position;
		numbering->numbers[position] = (uint32_t)numbering->count;
	}
	return numbering->numbers[position];
}

static uint32_t text(struct encoder *encoder, const char *string)
{
	return string_table_intern(&encoder->strings, string);
}

static uint32_t string(struct encoder *encoder, uint32_t number)
{
	return text(encoder, pprof_data_string(encoder->data, number));
}

static void put(struct encoder *encoder)
{
	gzip_write(&encoder->gzip, encoder->part.bytes, encoder->part.size);
	encoder->raw_size += encoder->part.size;
	protobuf_clear(&encoder->part);
}

static void put_message(struct encoder *encoder, uint32_t field)
{
	protobuf_message(&encoder->part, field, &encoder->message);
	protobuf_clear(&encoder->message);
	put(encoder);
}

static void put_int(struct encoder *encoder, uint32_t field, int64_t value)
{
	protobuf_int(&encoder->part, field, (uint64_t)value);
	put(encoder);
}

static void put_type(struct encoder *encoder, uint32_t field, const struct pprof_type *type)
{
	protobuf_int(&encoder->message, VALUE_TYPE_TYPE, string(encoder, type->type));
	protobuf_int(&encoder->message, VALUE_TYPE_UNIT, string(encoder, type->unit));
	put_message(encoder, field);
}

static void put_header(struct encoder *encoder)
{
	const struct pprof_data *data = encoder->data;

	text(encoder, "");
	for (size_t i = 0; i < data->n_types; i++)
		put_type(encoder, PROFILE_SAMPLE_TYPE, &data->types[i]);
	put_type(encoder, PROFILE_PERIOD_TYPE, &data->period_type);
	put_int(encoder, PROFILE_PERIOD, data->period);
	put_int(encoder, PROFILE_TIME_NANOS, data->time_ns);
	put_int(encoder, PROFILE_DURATION_NANOS, data->duration_ns);
	put_int(encoder, PROFILE_DEFAULT_SAMPLE_TYPE, string(encoder, data->default_type));
	if (data->n_mappings > 0)
		number_of(&encoder->mappings, 0); // the program's own comes first
}

static void build_labels(struct encoder *encoder, const struct pprof_row *row)
{
	for (size_t i = 0; i < encoder->rows->n_keys && encoder->encoding->labels; i++) {
		if (!row->labels[i])
			continue;
		protobuf_int(&encoder->part, LABEL_KEY, string(encoder, encoder->rows->keys[i]));
		protobuf_int(&encoder->part, LABEL_STR, string(encoder, row->labels[i]));
		protobuf_message(&encoder->message, SAMPLE_LABEL, &encoder->part);
		protobuf_clear(&encoder->part);
	}
}

static void put_row(struct encoder *encoder, const struct pprof_row *row)
{
	const uint64_t *locations = encoder->data->location_ids + row->first_location;

	for (uint32_t i = 0; i < row->n_locations; i++)
		protobuf_varint(&encoder->packed, number_of(&encoder->locations, locations[i]));
	if (row->cut)
		protobuf_varint(&encoder->packed,
		                number_of(&encoder->locations, encoder->data->n_locations));
	protobuf_message(&encoder->message, SAMPLE_LOCATION_ID, &encoder->packed);
	protobuf_clear(&encoder->packed);
	for (size_t i = 0; i < encoder->data->n_types; i++)
		protobuf_varint(&encoder->packed, (uint64_t)row->values[i]);
	protobuf_message(&encoder->message, SAMPLE_VALUE, &encoder->packed);
	protobuf_clear(&encoder->packed);
	build_labels(encoder, row);
	put_message(encoder, PROFILE_SAMPLE);
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

static void build_line(struct encoder *encoder, uint64_t function, int64_t line)
{
	protobuf_int(&encoder->part, LINE_FUNCTION_ID, number_of(&encoder->functions, function));
	protobuf_int(&encoder->part, LINE_LINE, (uint64_t)line);
	protobuf_message(&encoder->message, LOCATION_LINE, &encoder->part);
	protobuf_clear(&encoder->part);
}

static void build_location(struct encoder *encoder, const struct pprof_location *location)
{
	if (location->mapping)
		protobuf_int(&encoder->message, LOCATION_MAPPING_ID,
		             number_of(&encoder->mappings, location->mapping - 1));
	protobuf_int(&encoder->message, LOCATION_ADDRESS, location->address);
	const uint32_t n_lines = is_left_to_server(encoder, location) ? 0 : location->n_lines;
	for (uint32_t i = 0; i < n_lines; i++) {
		const struct pprof_line *line = &encoder->data->lines[location->first_line + i];
		build_line(encoder, line->function, line->line);
	}
}

static void put_location(struct encoder *encoder, uint32_t number, uint32_t position)
{
	const struct pprof_data *data = encoder->data;

	protobuf_int(&encoder->message, LOCATION_ID, number);
	if (position < data->n_locations)
		build_location(encoder, &data->locations[position]);
	else
		build_line(encoder, data->n_functions, 0);
	put_message(encoder, PROFILE_LOCATION);
}

static void build_function(struct encoder *encoder, const struct pprof_function *function)
{
	protobuf_int(&encoder->message, FUNCTION_NAME, string(encoder, function->name));
	protobuf_int(&encoder->message, FUNCTION_SYSTEM_NAME,
	             string(encoder, function->system_name));
	protobuf_int(&encoder->message, FUNCTION_FILENAME, string(encoder, function->file));
	protobuf_int(&encoder->message, FUNCTION_START_LINE, (uint64_t)function->start_line);
}

static void put_function(struct encoder *encoder, uint32_t number, uint32_t position)
{
	const struct pprof_data *data = encoder->data;

	protobuf_int(&encoder->message, FUNCTION_ID, number);
	if (position < data->n_functions)
		build_function(encoder, &data->functions[position]);
	else
		protobuf_int(&encoder->message, FUNCTION_NAME, text(encoder, CUT_NAME));
	put_message(encoder, PROFILE_FUNCTION);
}

static void put_mapping(struct encoder *encoder, uint32_t number,
                        const struct pprof_mapping *mapping)
{
	protobuf_int(&encoder->message, MAPPING_ID, number);
	protobuf_int(&encoder->message, MAPPING_MEMORY_START, mapping->start);
	protobuf_int(&encoder->message, MAPPING_MEMORY_LIMIT, mapping->limit);
	protobuf_int(&encoder->message, MAPPING_FILE_OFFSET, mapping->offset);
	protobuf_int(&encoder->message, MAPPING_FILENAME, string(encoder, mapping->file));
	protobuf_int(&encoder->message, MAPPING_BUILD_ID, string(encoder, mapping->build_id));
	for (size_t i = 0; i < array_size(mapping->has); i++)
		protobuf_int(&encoder->message, MAPPING_HAS_FUNCTIONS + (uint32_t)i,
		             mapping->has[i]);
	put_message(encoder, PROFILE_MAPPING);
}

static void put_tables(struct encoder *encoder)
{
	const struct pprof_data *data = encoder->data;

	for (size_t i = 0; i < encoder->locations.count; i++)
		put_location(encoder, (uint32_t)i + 1, encoder->locations.order[i]);
	for (size_t i = 0; i < encoder->functions.count; i++)
		put_function(encoder, (uint32_t)i + 1, encoder->functions.order[i]);
	for (size_t i = 0; i < encoder->mappings.count; i++)
		put_mapping(encoder, (uint32_t)i + 1, &data->mappings[encoder->mappings.order[i]]);
	for (size_t i = 0; i < encoder->strings.count; i++) {
		protobuf_string(&encoder->part, PROFILE_STRING_TABLE, encoder->strings.items[i]);
		put(encoder);
	}
}

static void encode(struct encoder *encoder, size_t from, size_t to)
{
	const struct pprof_data *data = encoder->data;

	numbering_init(&encoder->locations, data->n_locations + 1);
	numbering_init(&encoder->functions, data->n_functions + 1);
	numbering_init(&encoder->mappings, data->n_mappings);
	put_header(encoder);
	for (size_t i = from; i < to; i++)
		put_row(encoder, &encoder->rows->items[i]);
	put_tables(encoder);
	gzip_finish(&encoder->gzip);
	gzip_deinit(&encoder->gzip);
	protobuf_deinit(&encoder->message);
	protobuf_deinit(&encoder->part);
	protobuf_deinit(&encoder->packed);
	string_table_deinit(&encoder->strings);
	numbering_deinit(&encoder->locations);
	numbering_deinit(&encoder->functions);
	numbering_deinit(&encoder->mappings);
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
	struct error *error = gzip_init(&encoder->gzip, stream);
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
	    .raw_size = encoder->raw_size,
	};
	return NULL;
}
