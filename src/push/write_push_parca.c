// SPDX-License-Identifier: MIT
// Parca's WriteRawRequest as the JSON that its gateway takes; labels of samples are not kept there,
// so each of them is the series' own.
//
// https://github.com/parca-dev/parca/blob/main/proto/parca/profilestore/v1alpha1/profilestore.proto
#include "destination.h"

#include "base64.h"
#include "json.h"
#include "pprof_encode.h"
#include "pprof_rows.h"
#include "push_labels.h"

static void put_label(struct json *json, const char *key, const char *value)
{
	json_open(json, '{');
	json_key_string(json, "name", key);
	json_key_string(json, "value", value);
	json_close(json, '}');
}

static void put_labels(struct json *json, const struct push_series *series)
{
	const struct pprof_data *data = series->rows->data;

	put_label(json, "__name__", series->name);
	for (size_t i = 0; i < series->labels->count; i++)
		put_label(json, series->labels->items[i].key, series->labels->items[i].value);
	for (size_t i = 0; i < series->rows->n_keys; i++)
		if (series->row->labels[i])
			put_label(json, pprof_data_string(data, series->rows->keys[i]),
			          pprof_data_string(data, series->row->labels[i]));
}

struct error *write_push_parca(const struct push_series *series, FILE *stream)
{
	struct json json = {.stream = stream};

	json_open(&json, '{');
	json_key_open(&json, "series", '[');
	json_open(&json, '{');
	json_key_open(&json, "labels", '{');
	json_key_open(&json, "labels", '[');
	put_labels(&json, series);
	json_close(&json, ']');
	json_close(&json, '}');
	json_key_open(&json, "samples", '[');
	json_open(&json, '{');
	json_key(&json, "rawProfile");
	putc('"', stream);
	base64_write(stream, series->file->bytes, series->file->size);
	putc('"', stream);
	json_close(&json, '}');
	json_close(&json, ']');
	json_close(&json, '}');
	json_close(&json, ']');
	json_close(&json, '}');
	return NULL;
}
