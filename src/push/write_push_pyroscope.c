// SPDX-License-Identifier: MIT
// Grafana Pyroscope's push.v1.PushRequest, sent by the Connect protocol without an envelope:
//
//     PushRequest { 1 series[] { 1 labels[] { 1 name 2 value } 2 samples[] { 1 raw_profile 2 ID } }
//     }
//
// https://github.com/grafana/pyroscope/blob/main/api/push/v1/push.proto
#include "destination.h"

#include <string.h>

#include "pprof_encode.h"
#include "protobuf.h"
#include "push_labels.h"

static void add_label(struct protobuf *series, const char *key, const char *value)
{
	struct protobuf label = {0};

	protobuf_string(&label, 1, key);
	protobuf_string(&label, 2, value);
	protobuf_message(series, 1, &label);
	protobuf_deinit(&label);
}

struct error *write_push_pyroscope(const struct push_series *series, FILE *stream)
{
	struct protobuf request = {0}, message = {0}, sample = {0};
	// Only looked at.
	const struct protobuf profile = {.bytes = series->file->bytes, .size = series->file->size};

	add_label(&message, "__name__", series->name);
	for (size_t i = 0; i < series->labels->count; i++)
		add_label(&message, series->labels->items[i].key, series->labels->items[i].value);
	protobuf_message(&sample, 1, &profile);
	protobuf_string(&sample, 2, series->id);
	protobuf_message(&message, 2, &sample);
	protobuf_message(&request, 1, &message);
	fwrite(request.bytes, 1, request.size, stream);
	protobuf_deinit(&request);
	protobuf_deinit(&message);
	protobuf_deinit(&sample);
	return NULL;
}
