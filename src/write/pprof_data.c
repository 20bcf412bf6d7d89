// SPDX-License-Identifier: MIT
#include "pprof_data.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "gzip.h"
#include "memory.h"
#include "pprof_fields.h"
#include "protobuf.h"
#include "text.h"

enum {
	MAX_ITEMS = 1 << 22,        // of each table: two bytes of a file become dozens in memory
	MAX_TABLE_BYTES = 96 << 20, // of all tables
	MAX_NAME_BYTES = 1 << 20,
	FIRST_MAPPING_HAS = MAPPING_HAS_FUNCTIONS,
};

// The file may define strings and ids at its end: until then the file's own numbers are kept.
struct reader {
	struct pprof_data *data;
	uint32_t *strings; // by the file's number: the number in data->strings
	size_t n_strings, strings_capacity;
	size_t table_bytes;
	bool failed, is_too_large;
};

const char *pprof_data_string(const struct pprof_data *data, uint32_t string)
{
	return data->strings.items[string];
}

size_t pprof_data_type(const struct pprof_data *data, const char *name)
{
	for (size_t i = 0; i < data->n_types; i++)
		if (strcmp(pprof_data_string(data, data->types[i].type), name) == 0)
			return i;
	return data->n_types - 1;
}

static uint32_t number(struct reader *reader, uint64_t value)
{
	reader->failed |= value > UINT32_MAX;
	return (uint32_t)value;
}

static struct protobuf_cursor open_message(struct reader *reader,
                                           const struct protobuf_field *field)
{
	reader->failed |= !field->bytes;
	return protobuf_cursor_of(field->bytes ? (const void *)field->bytes : "", field->size);
}

// Counts an item of so many bytes, one more than `count`. True: it would be too many.
static bool is_full(struct reader *reader, size_t count, size_t size)
{
	reader->table_bytes += size;
	if (count < MAX_ITEMS && reader->table_bytes <= MAX_TABLE_BYTES)
		return false;
	reader->failed = reader->is_too_large = true;
	return true;
}

static void read_string(struct reader *reader, const struct protobuf_field *field)
{
	if (is_full(reader, reader->n_strings, sizeof(*reader->strings)) || !field->bytes)
		return;
	_cleanup_free_ char *text =
	    text_clean((const char *)field->bytes, field->size, MAX_NAME_BYTES);
	*array_push(reader->strings, reader->n_strings, reader->strings_capacity) =
	    string_table_intern(&reader->data->strings, text);
}

static struct pprof_type read_type(struct reader *reader, const struct protobuf_field *message)
{
	struct protobuf_cursor cursor = open_message(reader, message);
	struct protobuf_field field;
	struct pprof_type type = {0};

	while (protobuf_cursor_next(&cursor, &field)) {
		if (field.number == VALUE_TYPE_TYPE)
			type.type = number(reader, field.value);
		else if (field.number == VALUE_TYPE_UNIT)
			type.unit = number(reader, field.value);
	}
	reader->failed |= cursor.failed;
	return type;
}

static void read_sample_type(struct reader *reader, const struct protobuf_field *message)
{
	struct pprof_data *data = reader->data;

	if (data->n_types == PPROF_MAX_TYPES)
		reader->failed = true;
	else
		data->types[data->n_types++] = read_type(reader, message);
}

static void add_location_id(struct reader *reader, uint64_t id)
{
	struct pprof_data *data = reader->data;

	if (is_full(reader, 0, sizeof(id)))
		return;
	*array_push(data->location_ids, data->n_location_ids, data->location_ids_capacity) = id;
}

static void read_location_ids(struct reader *reader, const struct protobuf_field *field)
{
	if (!field->bytes) {
		add_location_id(reader, field->value);
		return;
	}
	struct protobuf_cursor cursor = open_message(reader, field);
	while (cursor.at < cursor.end && !cursor.failed && !reader->failed)
		add_location_id(reader, protobuf_cursor_varint(&cursor));
	reader->failed |= cursor.failed;
}

static void add_value(struct reader *reader, struct pprof_sample *sample, uint64_t value)
{
	if (sample->n_values == PPROF_MAX_TYPES)
		reader->failed = true;
	else
		sample->values[sample->n_values++] = (int64_t)value;
}

static void read_values(struct reader *reader, const struct protobuf_field *field,
                        struct pprof_sample *sample)
{
	if (!field->bytes) {
		add_value(reader, sample, field->value);
		return;
	}
	struct protobuf_cursor cursor = open_message(reader, field);
	while (cursor.at < cursor.end && !cursor.failed && !reader->failed)
		add_value(reader, sample, protobuf_cursor_varint(&cursor));
	reader->failed |= cursor.failed;
}

static void read_label(struct reader *reader, const struct protobuf_field *message)
{
	struct pprof_data *data = reader->data;
	struct protobuf_cursor cursor = open_message(reader, message);
	struct protobuf_field field;
	struct pprof_label label = {0};

	while (protobuf_cursor_next(&cursor, &field)) {
		if (field.number == LABEL_KEY)
			label.key = number(reader, field.value);
		else if (field.number == LABEL_STR)
			label.text = number(reader, field.value);
	}
	reader->failed |= cursor.failed;
	if (label.text && !is_full(reader, 0, sizeof(label)))
		*array_push(data->labels, data->n_labels, data->labels_capacity) = label;
}

static void read_sample(struct reader *reader, const struct protobuf_field *message)
{
	struct pprof_data *data = reader->data;
	struct protobuf_cursor cursor = open_message(reader, message);
	struct protobuf_field field;
	struct pprof_sample sample = {
	    .first_location = (uint32_t)data->n_location_ids,
	    .first_label = (uint32_t)data->n_labels,
	};

	if (is_full(reader, data->n_samples, sizeof(*data->samples)))
		return;
	while (protobuf_cursor_next(&cursor, &field)) {
		if (field.number == SAMPLE_LOCATION_ID)
			read_location_ids(reader, &field);
		else if (field.number == SAMPLE_VALUE)
			read_values(reader, &field, &sample);
		else if (field.number == SAMPLE_LABEL)
			read_label(reader, &field);
	}
	reader->failed |= cursor.failed;
	sample.n_locations = (uint32_t)data->n_location_ids - sample.first_location;
	sample.n_labels = (uint32_t)data->n_labels - sample.first_label;
	*array_push(data->samples, data->n_samples, data->samples_capacity) = sample;
}

static void read_mapping(struct reader *reader, const struct protobuf_field *message)
{
	struct pprof_data *data = reader->data;
	struct protobuf_cursor cursor = open_message(reader, message);
	struct protobuf_field field;
	struct pprof_mapping mapping = {0};

	if (is_full(reader, data->n_mappings, sizeof(*data->mappings)))
		return;
	while (protobuf_cursor_next(&cursor, &field)) {
		if (field.number == MAPPING_ID)
			mapping.id = field.value;
		else if (field.number == MAPPING_MEMORY_START)
			mapping.start = field.value;
		else if (field.number == MAPPING_MEMORY_LIMIT)
			mapping.limit = field.value;
		else if (field.number == MAPPING_FILE_OFFSET)
			mapping.offset = field.value;
		else if (field.number == MAPPING_FILENAME)
			mapping.file = number(reader, field.value);
		else if (field.number == MAPPING_BUILD_ID)
			mapping.build_id = number(reader, field.value);
		else if (field.number >= FIRST_MAPPING_HAS &&
		         field.number < FIRST_MAPPING_HAS + array_size(mapping.has))
			mapping.has[field.number - FIRST_MAPPING_HAS] = field.value;
	}
	reader->failed |= cursor.failed || mapping.id == 0;
	*array_push(data->mappings, data->n_mappings, data->mappings_capacity) = mapping;
}

static void read_line(struct reader *reader, const struct protobuf_field *message)
{
	struct pprof_data *data = reader->data;
	struct protobuf_cursor cursor = open_message(reader, message);
	struct protobuf_field field;
	struct pprof_line line = {0};

	if (is_full(reader, data->n_lines, sizeof(*data->lines)))
		return;
	while (protobuf_cursor_next(&cursor, &field)) {
		if (field.number == LINE_FUNCTION_ID)
			line.function = field.value;
		else if (field.number == LINE_LINE)
			line.line = (int64_t)field.value;
	}
	reader->failed |= cursor.failed;
	*array_push(data->lines, data->n_lines, data->lines_capacity) = line;
}

static void read_location(struct reader *reader, const struct protobuf_field *message)
{
	struct pprof_data *data = reader->data;
	struct protobuf_cursor cursor = open_message(reader, message);
	struct protobuf_field field;
	struct pprof_location location = {.first_line = (uint32_t)data->n_lines};

	if (is_full(reader, data->n_locations, sizeof(*data->locations)))
		return;
	while (protobuf_cursor_next(&cursor, &field)) {
		if (field.number == LOCATION_ID)
			location.id = field.value;
		else if (field.number == LOCATION_MAPPING_ID)
			location.mapping = field.value;
		else if (field.number == LOCATION_ADDRESS)
			location.address = field.value;
		else if (field.number == LOCATION_LINE)
			read_line(reader, &field);
	}
	reader->failed |= cursor.failed || location.id == 0;
	location.n_lines = (uint32_t)data->n_lines - location.first_line;
	*array_push(data->locations, data->n_locations, data->locations_capacity) = location;
}

static void read_function(struct reader *reader, const struct protobuf_field *message)
{
	struct pprof_data *data = reader->data;
	struct protobuf_cursor cursor = open_message(reader, message);
	struct protobuf_field field;
	struct pprof_function function = {0};

	if (is_full(reader, data->n_functions, sizeof(*data->functions)))
		return;
	while (protobuf_cursor_next(&cursor, &field)) {
		if (field.number == FUNCTION_ID)
			function.id = field.value;
		else if (field.number == FUNCTION_NAME)
			function.name = number(reader, field.value);
		else if (field.number == FUNCTION_SYSTEM_NAME)
			function.system_name = number(reader, field.value);
		else if (field.number == FUNCTION_FILENAME)
			function.file = number(reader, field.value);
		else if (field.number == FUNCTION_START_LINE)
			function.start_line = (int64_t)field.value;
	}
	reader->failed |= cursor.failed || function.id == 0;
	*array_push(data->functions, data->n_functions, data->functions_capacity) = function;
}

static void add_comment(struct reader *reader, uint64_t string)
{
	struct pprof_data *data = reader->data;

	if (!is_full(reader, data->n_comments, sizeof(*data->comments)))
		*array_push(data->comments, data->n_comments, data->comments_capacity) =
		    number(reader, string);
}

static void read_comment(struct reader *reader, const struct protobuf_field *field)
{
	if (!field->bytes) {
		add_comment(reader, field->value);
		return;
	}
	struct protobuf_cursor cursor = open_message(reader, field);
	while (cursor.at < cursor.end && !cursor.failed && !reader->failed)
		add_comment(reader, protobuf_cursor_varint(&cursor));
	reader->failed |= cursor.failed;
}

static void read_field(struct reader *reader, const struct protobuf_field *field)
{
	static void (*const messages[])(struct reader *, const struct protobuf_field *) = {
	    [PROFILE_SAMPLE_TYPE] = read_sample_type, [PROFILE_SAMPLE] = read_sample,
	    [PROFILE_MAPPING] = read_mapping,         [PROFILE_LOCATION] = read_location,
	    [PROFILE_FUNCTION] = read_function,       [PROFILE_STRING_TABLE] = read_string,
	    [PROFILE_COMMENT] = read_comment,
	};
	struct pprof_data *data = reader->data;

	if (field->number < array_size(messages) && messages[field->number])
		messages[field->number](reader, field);
	else if (field->number == PROFILE_TIME_NANOS)
		data->time_ns = (int64_t)field->value;
	else if (field->number == PROFILE_DURATION_NANOS)
		data->duration_ns = (int64_t)field->value;
	else if (field->number == PROFILE_PERIOD)
		data->period = (int64_t)field->value;
	else if (field->number == PROFILE_PERIOD_TYPE)
		data->period_type = read_type(reader, field);
	else if (field->number == PROFILE_DEFAULT_SAMPLE_TYPE)
		data->default_type = number(reader, field->value);
}

// Replaces the file's number of a string by ours.
static void find_string(struct reader *reader, uint32_t *string)
{
	if (*string < reader->n_strings)
		*string = reader->strings[*string];
	else
		reader->failed = true;
}

static void find_strings(struct reader *reader)
{
	struct pprof_data *data = reader->data;

	for (size_t i = 0; i < data->n_types; i++) {
		find_string(reader, &data->types[i].type);
		find_string(reader, &data->types[i].unit);
	}
	find_string(reader, &data->period_type.type);
	find_string(reader, &data->period_type.unit);
	find_string(reader, &data->default_type);
	for (size_t i = 0; i < data->n_labels; i++) {
		find_string(reader, &data->labels[i].key);
		find_string(reader, &data->labels[i].text);
	}
	for (size_t i = 0; i < data->n_functions; i++) {
		find_string(reader, &data->functions[i].name);
		find_string(reader, &data->functions[i].system_name);
		find_string(reader, &data->functions[i].file);
	}
	for (size_t i = 0; i < data->n_mappings; i++) {
		find_string(reader, &data->mappings[i].file);
		find_string(reader, &data->mappings[i].build_id);
	}
	for (size_t i = 0; i < data->n_comments; i++)
		find_string(reader, &data->comments[i]);
}

// A table of items of `size` bytes, whose first member is their id.
struct id_table {
	const void *items;
	size_t size;
	struct hash_index index;
};

static uint64_t id_at(const struct id_table *table, size_t i)
{
	return *(const uint64_t *)(const void *)((const char *)table->items + i * table->size);
}

static bool id_equal(const void *context, uint32_t i, const void *key)
{
	return id_at(context, i) == *(const uint64_t *)key;
}

static uint32_t find_id(const struct id_table *table, uint64_t id)
{
	return hash_index_find(&table->index, hash_mix(id, 0), id_equal, table, &id);
}

static void index_ids(struct reader *reader, struct id_table *table, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint64_t id = id_at(table, i);
		if (find_id(table, id) != HASH_NONE)
			reader->failed = true; // the id is there twice
		else
			hash_index_insert(&table->index, hash_mix(id, 0), (uint32_t)i);
	}
}

// Replaces the file's ids by positions.
static void find_ids(struct reader *reader)
{
	struct pprof_data *data = reader->data;
	struct id_table mappings = {data->mappings, sizeof(*data->mappings), {0}};
	struct id_table functions = {data->functions, sizeof(*data->functions), {0}};
	struct id_table locations = {data->locations, sizeof(*data->locations), {0}};

	index_ids(reader, &mappings, data->n_mappings);
	index_ids(reader, &functions, data->n_functions);
	index_ids(reader, &locations, data->n_locations);
	for (size_t i = 0; i < data->n_locations; i++) {
		struct pprof_location *location = &data->locations[i];
		const uint32_t mapping =
		    location->mapping ? find_id(&mappings, location->mapping) : 0;
		reader->failed |= mapping == HASH_NONE;
		location->mapping = location->mapping ? (uint64_t)mapping + 1 : 0;
	}
	for (size_t i = 0; i < data->n_lines; i++) {
		data->lines[i].function = find_id(&functions, data->lines[i].function);
		reader->failed |= data->lines[i].function == HASH_NONE;
	}
	for (size_t i = 0; i < data->n_location_ids; i++) {
		data->location_ids[i] = find_id(&locations, data->location_ids[i]);
		reader->failed |= data->location_ids[i] == HASH_NONE;
	}
	for (size_t i = 0; i < data->n_samples; i++) // the types may come last in the file
		reader->failed |= data->samples[i].n_values != data->n_types;
	hash_index_deinit(&mappings.index);
	hash_index_deinit(&functions.index);
	hash_index_deinit(&locations.index);
}

static struct error *read_profile(struct pprof_data *data, const char *name, const uint8_t *bytes,
                                  size_t size)
{
	struct reader reader = {.data = data};
	struct protobuf_cursor cursor = protobuf_cursor_of(bytes, size);
	struct protobuf_field field;

	string_table_intern(&data->strings, "");
	while (!reader.failed && protobuf_cursor_next(&cursor, &field))
		read_field(&reader, &field);
	reader.failed |=
	    cursor.failed || data->n_types == 0 || reader.n_strings == 0 || reader.strings[0] != 0;
	if (!reader.failed)
		find_strings(&reader);
	if (!reader.failed)
		find_ids(&reader);
	free(reader.strings);
	if (!reader.failed)
		return NULL;
	return reader.is_too_large
	           ? error_create(EXIT_STATUS_TARGET,
	                          "%s is too large: it has too many samples, names or lines", name)
	           : error_create(
	                 EXIT_STATUS_TARGET,
	                 "%s is not a pprof profile: unpack any other profile first (gunzip)",
	                 name);
}

struct error *pprof_data_read(const char *name, const void *bytes, size_t size, size_t max_bytes,
                              struct pprof_data *ret)
{
	const uint8_t *start = bytes;
	_cleanup_free_ uint8_t *unpacked = NULL;

	*ret = (struct pprof_data){0};
	if (size >= 2 && start[0] == 0x1f && start[1] == 0x8b) {
		struct error *error = gunzip(name, bytes, size, max_bytes, &unpacked, &size);
		if (error)
			return error;
		start = unpacked;
	}
	ret->raw_size = size;
	struct error *error = size <= max_bytes
	                          ? read_profile(ret, name, start, size)
	                          : error_create(EXIT_STATUS_TARGET, "%s is too large", name);
	if (error)
		pprof_data_deinit(ret);
	return error;
}

void pprof_data_deinit(struct pprof_data *data)
{
	string_table_deinit(&data->strings);
	free(data->samples);
	free(data->location_ids);
	free(data->labels);
	free(data->locations);
	free(data->lines);
	free(data->functions);
	free(data->mappings);
	free(data->comments);
	*data = (struct pprof_data){0};
}
