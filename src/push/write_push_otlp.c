// SPDX-License-Identifier: MIT
// OpenTelemetry's ExportProfilesServiceRequest, of version 1.10 of its protocol: earlier ones
// number the fields of a sample otherwise, and a server takes either without a word and keeps
// nothing.
//
//     Request { 1 ResourceProfiles[], 2 Dictionary }
//     Dictionary { 1 mapping[], 2 location[], 3 function[], 4 link[], 5 string[], 6 attribute[],
//                  7 stack[] }, of each the first is empty and means none
//     ResourceProfiles { 1 Resource { 1 KeyValue[] }, 2 ScopeProfiles[] { 1 scope, 2 Profile[] } }
//     Profile { 1 sample_type, 2 Sample[], 3 time, 4 duration, 5 period_type, 6 period, 7 id }
//     Sample { 1 stack, 2 attributes[], 3 link, 4 values[] }
//
// https://github.com/open-telemetry/opentelemetry-proto, opentelemetry/proto/profiles/v1development
#include "destination.h"

#include <stdlib.h>
#include <string.h>

#include "gzip.h"
#include "hash.h"
#include "memory.h"
#include "pprof_encode.h"
#include "pprof_rows.h"
#include "protobuf.h"
#include "push_labels.h"

enum { ID_BYTES = 16, WIRE_FIXED64 = 1 };

enum {
	DICTIONARY_MAPPING = 1,
	DICTIONARY_LOCATION = 2,
	DICTIONARY_FUNCTION = 3,
	DICTIONARY_LINK = 4,
	DICTIONARY_STRING = 5,
	DICTIONARY_ATTRIBUTE = 6,
	DICTIONARY_STACK = 7,
};

// All numbers of tables are positions + 1, since the first item of each means none.
struct otlp {
	const struct push_series *series;
	const struct pprof_rows *rows;
	const struct pprof_data *data;
	struct string_table strings;
	struct protobuf dictionary;
	struct protobuf message, part, packed; // room for what is built
	uint64_t n_attributes;
	uint64_t *row_attributes; // of each row in turn, rows->n_keys; 0: none
};

static uint64_t text(struct otlp *otlp, const char *string)
{
	return string_table_intern(&otlp->strings, string);
}

static uint64_t string(struct otlp *otlp, uint32_t number)
{
	return text(otlp, pprof_data_string(otlp->data, number));
}

// Moves what is built in `from` into a field of `to`.
static void put(struct protobuf *to, uint32_t field, struct protobuf *from)
{
	protobuf_message(to, field, from);
	protobuf_clear(from);
}

static void put_fixed64(struct protobuf *to, uint32_t field, uint64_t value)
{
	uint8_t bytes[8];
	struct protobuf raw = {.bytes = bytes, .size = sizeof(bytes)};

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	protobuf_varint(to, (uint64_t)field << 3 | WIRE_FIXED64);
	protobuf_append(to, &raw);
}

static void build_type(struct otlp *otlp, struct protobuf *to, uint32_t field,
                       const struct pprof_type *type)
{
	protobuf_int(&otlp->part, 1, string(otlp, type->type));
	protobuf_int(&otlp->part, 2, string(otlp, type->unit));
	put(to, field, &otlp->part);
}

// The value of a KeyValue: an AnyValue of a text.
static void put_text_value(struct protobuf *to, const char *value)
{
	struct protobuf any = {0};

	protobuf_string(&any, 1, value);
	protobuf_message(to, 2, &any);
	protobuf_deinit(&any);
}

// The number of a new attribute with that text.
static uint64_t add_attribute(struct otlp *otlp, const char *key, const char *value)
{
	protobuf_int(&otlp->message, 1, text(otlp, key));
	put_text_value(&otlp->message, value);
	put(&otlp->dictionary, DICTIONARY_ATTRIBUTE, &otlp->message);
	return ++otlp->n_attributes;
}

static void put_mappings(struct otlp *otlp)
{
	const struct pprof_data *data = otlp->data;

	put(&otlp->dictionary, DICTIONARY_MAPPING, &otlp->message);
	for (size_t i = 0; i < data->n_mappings; i++) {
		const struct pprof_mapping *mapping = &data->mappings[i];
		const char *build_id = pprof_data_string(data, mapping->build_id);
		const uint64_t attribute =
		    *build_id ? add_attribute(otlp, "process.executable.build_id.gnu", build_id)
		              : 0;
		protobuf_int(&otlp->message, 1, mapping->start);
		protobuf_int(&otlp->message, 2, mapping->limit);
		protobuf_int(&otlp->message, 3, mapping->offset);
		protobuf_int(&otlp->message, 4, string(otlp, mapping->file));
		if (attribute)
			protobuf_varint(&otlp->packed, attribute);
		put(&otlp->message, 5, &otlp->packed);
		put(&otlp->dictionary, DICTIONARY_MAPPING, &otlp->message);
	}
}

static void build_line(struct otlp *otlp, uint64_t function, int64_t line)
{
	protobuf_int(&otlp->part, 1, function);
	protobuf_int(&otlp->part, 2, (uint64_t)line);
	put(&otlp->message, 3, &otlp->part);
}

static void put_locations(struct otlp *otlp)
{
	const struct pprof_data *data = otlp->data;

	put(&otlp->dictionary, DICTIONARY_LOCATION, &otlp->message);
	for (size_t i = 0; i < data->n_locations; i++) {
		const struct pprof_location *location = &data->locations[i];
		protobuf_int(&otlp->message, 1, location->mapping);
		protobuf_int(&otlp->message, 2, location->address);
		for (uint32_t j = 0; j < location->n_lines; j++) {
			const struct pprof_line *line = &data->lines[location->first_line + j];
			build_line(otlp, line->function + 1, line->line);
		}
		put(&otlp->dictionary, DICTIONARY_LOCATION, &otlp->message);
	}
}

static void put_functions(struct otlp *otlp)
{
	const struct pprof_data *data = otlp->data;

	put(&otlp->dictionary, DICTIONARY_FUNCTION, &otlp->message);
	for (size_t i = 0; i < data->n_functions; i++) {
		const struct pprof_function *function = &data->functions[i];
		protobuf_int(&otlp->message, 1, string(otlp, function->name));
		protobuf_int(&otlp->message, 2, string(otlp, function->system_name));
		protobuf_int(&otlp->message, 3, string(otlp, function->file));
		protobuf_int(&otlp->message, 4, (uint64_t)function->start_line);
		put(&otlp->dictionary, DICTIONARY_FUNCTION, &otlp->message);
	}
}

// One stack for each row.
static void put_stacks(struct otlp *otlp)
{
	put(&otlp->dictionary, DICTIONARY_STACK, &otlp->message);
	for (size_t i = 0; i < otlp->rows->count; i++) {
		const struct pprof_row *row = &otlp->rows->items[i];
		const uint64_t *locations = otlp->data->location_ids + row->first_location;
		for (uint32_t j = 0; j < row->n_locations; j++)
			protobuf_varint(&otlp->packed, locations[j] + 1);
		put(&otlp->message, 1, &otlp->packed);
		put(&otlp->dictionary, DICTIONARY_STACK, &otlp->message);
	}
}

// Rows with the same labels follow each other: they share their attributes.
static void find_attributes(struct otlp *otlp)
{
	const struct pprof_rows *rows = otlp->rows;
	uint64_t *attributes =
	    memory_alloc_zeroed(rows->count * PPROF_MAX_KEYS, sizeof(*attributes));

	otlp->row_attributes = attributes;
	for (size_t i = 0; i < rows->count; i++, attributes += PPROF_MAX_KEYS) {
		const struct pprof_row *row = &rows->items[i];
		if (i > 0 && memcmp(row->labels, row[-1].labels, sizeof(row->labels)) == 0) {
			const uint64_t *same = attributes - PPROF_MAX_KEYS;
			for (size_t k = 0; k < PPROF_MAX_KEYS; k++)
				attributes[k] = same[k];
			continue;
		}
		for (size_t k = 0; k < rows->n_keys; k++)
			if (row->labels[k])
				attributes[k] = add_attribute(
				    otlp, pprof_data_string(otlp->data, rows->keys[k]),
				    pprof_data_string(otlp->data, row->labels[k]));
	}
}

static void build_sample(struct otlp *otlp, size_t i, size_t type)
{
	const uint64_t *attributes = otlp->row_attributes + i * PPROF_MAX_KEYS;

	protobuf_int(&otlp->part, 1, i + 1);
	for (size_t k = 0; k < PPROF_MAX_KEYS; k++)
		if (attributes[k])
			protobuf_varint(&otlp->packed, attributes[k]);
	put(&otlp->part, 2, &otlp->packed);
	protobuf_varint(&otlp->packed, (uint64_t)otlp->rows->items[i].values[type]);
	put(&otlp->part, 4, &otlp->packed);
	put(&otlp->message, 2, &otlp->part);
}

// A profile of one type of values.
static void put_profile(struct otlp *otlp, struct protobuf *scope, size_t type)
{
	const struct pprof_data *data = otlp->data;
	const uint64_t hash = hash_bytes(otlp->series->id, strlen(otlp->series->id));
	uint8_t id[ID_BYTES];
	const struct protobuf raw = {.bytes = id, .size = sizeof(id)};

	for (size_t i = 0; i < ID_BYTES; i++)
		id[i] = (uint8_t)(hash_mix(hash + type, i / 8) >> (i % 8 * 8));
	build_type(otlp, &otlp->message, 1, &data->types[type]);
	for (size_t i = 0; i < otlp->rows->count; i++)
		build_sample(otlp, i, type);
	put_fixed64(&otlp->message, 3, (uint64_t)data->time_ns);
	protobuf_int(&otlp->message, 4, (uint64_t)data->duration_ns);
	build_type(otlp, &otlp->message, 5, &data->period_type);
	protobuf_int(&otlp->message, 6, (uint64_t)data->period);
	protobuf_message(&otlp->message, 7, &raw);
	put(scope, 2, &otlp->message);
}

static void put_resource(struct otlp *otlp, struct protobuf *profiles)
{
	const struct push_labels *labels = otlp->series->labels;

	for (size_t i = 0; i < labels->count; i++) {
		const char *key = labels->items[i].key;
		const char *name = strcmp(key, "service_name") == 0 ? "service.name"
		                   : strcmp(key, "host") == 0       ? "host.name"
		                                                    : key;
		protobuf_string(&otlp->part, 1, name);
		put_text_value(&otlp->part, labels->items[i].value);
		put(&otlp->message, 1, &otlp->part);
	}
	put(profiles, 1, &otlp->message);
}

static void put_tables(struct otlp *otlp)
{
	put(&otlp->dictionary, DICTIONARY_LINK, &otlp->message);
	put(&otlp->dictionary, DICTIONARY_ATTRIBUTE, &otlp->message);
	put_mappings(otlp);
	put_locations(otlp);
	put_functions(otlp);
	put_stacks(otlp);
	find_attributes(otlp);
}

// Names are most of it, and they are there once for each window.
static struct error *write_packed(const struct protobuf *request, FILE *stream)
{
	_cleanup_free_ struct gzip *gzip = memory_alloc(sizeof(*gzip));
	struct error *error = gzip_init(gzip, stream);

	if (error)
		return error;
	gzip_write(gzip, request->bytes, request->size);
	gzip_finish(gzip);
	gzip_deinit(gzip);
	return NULL;
}

static struct error *write_request(const struct push_series *series, const struct pprof_rows *rows,
                                   FILE *stream)
{
	struct otlp otlp = {.series = series, .rows = rows, .data = rows->data};
	struct protobuf request = {0}, profiles = {0}, scope = {0};

	text(&otlp, "");
	put_tables(&otlp);
	put_resource(&otlp, &profiles);
	protobuf_string(&otlp.part, 1, "profiler");
	protobuf_string(&otlp.part, 2, PROFILER_VERSION);
	put(&scope, 1, &otlp.part);
	for (size_t type = 0; type < otlp.data->n_types; type++)
		put_profile(&otlp, &scope, type);
	put(&profiles, 2, &scope);
	put(&request, 1, &profiles);
	for (size_t i = 0; i < otlp.strings.count; i++)
		protobuf_string(&otlp.dictionary, DICTIONARY_STRING, otlp.strings.items[i]);
	put(&request, 2, &otlp.dictionary);
	struct error *error = write_packed(&request, stream);
	free(otlp.row_attributes);
	string_table_deinit(&otlp.strings);
	protobuf_deinit(&otlp.dictionary);
	protobuf_deinit(&otlp.message);
	protobuf_deinit(&otlp.part);
	protobuf_deinit(&otlp.packed);
	protobuf_deinit(&request);
	protobuf_deinit(&profiles);
	protobuf_deinit(&scope);
	return error;
}

// Made of the pprof file, which has only what its rows need.
struct error *write_push_otlp(const struct push_series *series, FILE *stream)
{
	const struct pprof_rows *rows = series->rows;
	const char *keys[PPROF_MAX_KEYS + 1] = {NULL};
	struct pprof_data data;
	struct pprof_rows read;

	for (size_t i = 0; i < rows->n_keys; i++)
		keys[i] = pprof_data_string(rows->data, rows->keys[i]);
	struct error *error = pprof_data_read("", series->file->bytes, series->file->size,
	                                      series->file->raw_size, &data);
	if (error)
		return error;
	pprof_rows_init(&read, &data, keys, UINT32_MAX);
	error = write_request(series, &read, stream);
	pprof_rows_deinit(&read);
	pprof_data_deinit(&data);
	return error;
}
