// SPDX-License-Identifier: MIT
// A pprof profile of somebody's, cut into the requests that each kind of server takes; what is
// written anew can be read, and has the same sums.
#include "destination.h"
#include "error.h"
#include "fuzz.h"
#include "pprof_data.h"
#include "pprof_encode.h"
#include "pprof_rows.h"
#include "push_parts.h"

enum { MAX_BYTES = 64 << 20 };

static const char *const keys[] = {"state", "thread", NULL};
static const char *const urls[] = {"http://h", "parca+http://h", "pprof+http://h", "otlp+http://h"};

static uint64_t sum_of_samples(const struct pprof_data *data)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < data->n_samples; i++)
		for (size_t j = 0; j < data->n_types; j++)
			sum += (uint64_t)data->samples[i].values[j];
	return sum;
}

static void write_anew(struct pprof_data *data)
{
	const struct pprof_encoding encoding = {.labels = true, .server_names = true};
	struct pprof_data again;
	struct pprof_rows rows;
	struct pprof_file file;

	pprof_rows_init(&rows, data, keys, 5);
	expect(pprof_encode(&rows, 0, rows.count, &encoding, &file) == NULL);
	expect(pprof_data_read("again", file.bytes, file.size, MAX_BYTES, &again) == NULL);
	expect(sum_of_samples(&again) == sum_of_samples(data));
	expect(again.n_samples == rows.count);
	free(file.bytes);
	pprof_data_deinit(&again);
	pprof_rows_deinit(&rows);
}

static void cut_into_parts(const uint8_t *data, size_t size, const char *url)
{
	struct push_labels labels = {0};
	struct destination destination;
	struct push_parts parts;

	expect(destination_parse(url, &destination) == NULL);
	expect(push_parts_make("f", data, size,
	                       &(struct push_wishes){
	                           .destination = &destination,
	                           .labels = &labels,
	                           .keys = keys,
	                       },
	                       &parts) == NULL);
	uint64_t samples = parts.too_large;
	for (size_t i = 0; i < parts.count; i++)
		samples += parts.items[i].samples;
	expect(samples == parts.samples);
	push_parts_deinit(&parts);
	destination_deinit(&destination);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pprof_data profile;
	struct error *error = pprof_data_read("f", data, size, MAX_BYTES, &profile);

	if (error) {
		error_destroy(error);
		return 0;
	}
	write_anew(&profile);
	pprof_data_deinit(&profile);
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
		cut_into_parts(data, size, urls[i]);
	return 0;
}
