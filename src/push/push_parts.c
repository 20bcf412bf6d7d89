// SPDX-License-Identifier: MIT
#include "push_parts.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "destination.h"
#include "error.h"
#include "hash.h"
#include "memory.h"
#include "pprof_data.h"
#include "pprof_encode.h"
#include "pprof_rows.h"
#include "text.h"

enum { UUID_SIZE = 37 };

struct making {
	const struct push_wishes *wishes;
	const struct push_format *format;
	struct pprof_rows rows;
	struct push_labels labels;
	char *type;         // the name of the default type of values
	size_t sample_type; // the one that counts
	uint64_t hash;      // of the file
	struct push_parts *parts;
};

static uint64_t count(const struct making *making, size_t from, size_t to)
{
	uint64_t n = 0;

	for (size_t i = from; i < to; i++)
		n += (uint64_t)making->rows.items[i].values[making->sample_type];
	return n;
}

// RFC 9562, version 8: made of the file and the part's number, so that each try has the same.
static void make_uuid(const struct making *making, char ret[UUID_SIZE])
{
	const uint64_t n = making->parts->count;
	const uint64_t a = hash_mix(making->hash, n), b = hash_mix(n, making->hash);

	snprintf(ret, UUID_SIZE, "%08x-%04x-8%03x-%04x-%012" PRIx64, (unsigned int)(a >> 32),
	         (unsigned int)(a >> 16 & 0xffff), (unsigned int)(a & 0xfff),
	         (unsigned int)(0x8000 | (b >> 48 & 0x3fff)), b & 0xffffffffffff);
}

static char *describe(const struct making *making, const struct push_series *series)
{
	char *text = memory_printf("{__name__=%s", making->type);
	const struct pprof_rows *rows = &making->rows;

	for (size_t i = 0; i < making->labels.count; i++) {
		_cleanup_free_ char *before = text;
		text = memory_printf("%s, %s=%s", before, making->labels.items[i].key,
		                     making->labels.items[i].value);
	}
	for (size_t i = 0; series->row && i < rows->n_keys; i++) {
		_cleanup_free_ char *before = text;
		text =
		    memory_printf("%s, %s=%s", before, pprof_data_string(rows->data, rows->keys[i]),
		                  pprof_data_string(rows->data, series->row->labels[i]));
	}
	_cleanup_free_ char *before = text;
	return memory_printf("%s}", before);
}

static struct error *add_part(struct making *making, struct push_series *series)
{
	struct push_part part = {.samples = count(making, series->from, series->to)};
	char id[UUID_SIZE];
	char *body = NULL;

	make_uuid(making, id);
	series->id = id;
	FILE *stream = open_memstream(&body, &part.size);
	struct error *error = stream ? making->format->write(series, stream) : NULL;
	const bool written = stream && fflush(stream) == 0 && !ferror(stream);
	if (stream)
		fclose(stream);
	if (!error && !written)
		error = error_create(EXIT_STATUS_OUTPUT, "no memory for a profile to be sent");
	if (error) {
		free(body);
		return error;
	}
	part.body = (uint8_t *)body;
	part.raw_size = series->file->raw_size;
	part.series = describe(making, series);
	*array_push(making->parts->items, making->parts->count, making->parts->capacity) = part;
	return NULL;
}

static struct error *add_range(struct making *making, size_t from, size_t to);

static struct error *halve(struct making *making, size_t from, size_t to)
{
	const size_t middle = from + (to - from) / 2;

	if (to - from == 1) {
		making->parts->too_large += count(making, from, to);
		return NULL;
	}
	struct error *error = add_range(making, from, middle);
	return error ? error : add_range(making, middle, to);
}

// A request for the rows, or, where they are too much for one, several.
static struct error *add_range(struct making *making, size_t from, size_t to)
{
	const struct push_format *format = making->format;
	const struct pprof_encoding encoding = {
	    .labels = !format->splits_labels,
	    .server_names = format->names_functions,
	};
	struct pprof_file file;

	const size_t max_raw_bytes = format->max_raw_bytes * (to - from == 1 ? 2 : 1);

	if (to - from > format->max_rows)
		return halve(making, from, to);
	struct error *error = pprof_encode(&making->rows, from, to, &encoding, &file);
	if (error)
		return error;
	if (file.raw_size > max_raw_bytes)
		error = halve(making, from, to);
	else
		error = add_part(
		    making, &(struct push_series){
		                .labels = &making->labels,
		                .rows = &making->rows,
		                .from = from,
		                .to = to,
		                .row = format->splits_labels ? &making->rows.items[from] : NULL,
		                .file = &file,
		                .name = making->type,
		            });
	free(file.bytes);
	return error;
}

static struct error *add_rows(struct making *making)
{
	struct error *error = NULL;

	if (!making->format->splits_labels)
		return making->rows.count ? add_range(making, 0, making->rows.count) : NULL;
	for (size_t from = 0; from < making->rows.count && !error;) {
		const size_t n = pprof_rows_alike(&making->rows, from);
		error = add_range(making, from, from + n);
		from += n;
	}
	return error;
}

// What a server takes as the name of a metric.
static char *type_name(const struct pprof_data *data)
{
	const char *name = pprof_data_string(data, data->default_type);
	const size_t type = pprof_data_type(data, name);
	char *text = memory_strdup(pprof_data_string(data, data->types[type].type));

	for (char *c = text; *c; c++)
		if (!isascii(*c) || !isalnum((unsigned char)*c))
			*c = '_';
	return text;
}

// The file's own labels, as many as there is room for, then those that the user gave; a service
// there must be.
static void find_labels(struct making *making, const struct pprof_data *data)
{
	const size_t length = strlen(PUSH_LABEL_COMMENT);
	const struct push_labels *given = making->wishes->labels;

	push_labels_set(&making->labels, "service_name",
	                data->n_mappings && data->mappings[0].file
	                    ? text_base_name(pprof_data_string(data, data->mappings[0].file))
	                    : "unknown");
	for (size_t i = 0; i < data->n_comments; i++) {
		const char *comment = pprof_data_string(data, data->comments[i]);
		if (strncmp(comment, PUSH_LABEL_COMMENT, length) == 0 &&
		    making->labels.count + given->count < PUSH_MAX_LABELS)
			push_labels_parse(&making->labels, comment + length);
	}
	for (size_t i = 0; i < given->count; i++)
		push_labels_set(&making->labels, given->items[i].key, given->items[i].value);
}

static struct error *make(struct making *making, struct pprof_data *data)
{
	making->sample_type = pprof_data_type(data, "samples");
	making->type = type_name(data);
	find_labels(making, data);
	pprof_rows_init(&making->rows, data, making->wishes->keys, making->format->max_frames);
	struct error *error = add_rows(making);
	pprof_rows_deinit(&making->rows);
	push_labels_deinit(&making->labels);
	free(making->type);
	return error;
}

static void add_file(struct push_parts *parts, const void *bytes, size_t size)
{
	uint8_t *body = memory_alloc(size + 1);

	memcpy(body, bytes, size);
	*array_push(parts->items, parts->count, parts->capacity) = (struct push_part){
	    .body = body,
	    .size = size,
	    .raw_size = parts->raw_size,
	    .samples = parts->samples,
	    .series = memory_strdup(""),
	};
}

struct error *push_parts_make(const char *name, const void *bytes, size_t size,
                              const struct push_wishes *wishes, struct push_parts *ret)
{
	struct pprof_data data;
	struct error *error = pprof_data_read(name, bytes, size, PUSH_MAX_BYTES, &data);

	if (error)
		return error;
	*ret = (struct push_parts){
	    .raw_size = data.raw_size, .time_ns = data.time_ns, .end_ns = data.time_ns};
	if (data.duration_ns > 0 && data.time_ns < INT64_MAX - data.duration_ns)
		ret->end_ns += data.duration_ns;
	const size_t type = pprof_data_type(&data, "samples");
	for (size_t i = 0; i < data.n_samples; i++)
		ret->samples += (uint64_t)data.samples[i].values[type];
	if (wishes->destination->format->takes_files)
		add_file(ret, bytes, size);
	else
		error = make(
		    &(struct making){
		        .wishes = wishes,
		        .format = wishes->destination->format,
		        .hash = hash_bytes(bytes, size),
		        .parts = ret,
		    },
		    &data);
	pprof_data_deinit(&data);
	if (error)
		push_parts_deinit(ret);
	return error;
}

void push_parts_deinit(struct push_parts *parts)
{
	for (size_t i = 0; i < parts->count; i++) {
		free(parts->items[i].body);
		free(parts->items[i].series);
	}
	free(parts->items);
	*parts = (struct push_parts){0};
}
