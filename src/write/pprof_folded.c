// SPDX-License-Identifier: MIT
#include "pprof_folded.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "pprof_data.h"

enum {
	MAX_BYTES = 1 << 30,
	MAX_STEPS = 1 << 26, // frames of all stacks
};

#define MAX_COUNT INT64_C(999999999999999999) // folded_line.h

bool pprof_is(const uint8_t *bytes, size_t size)
{
	if (size >= 2 && memcmp(bytes, "\x1f\x8b", 2) == 0)
		return true;
	// A type of samples, a sample or a mapping; a text has no zeros.
	return size > 0 && memchr("\x0a\x12\x1a", bytes[0], 3) && memchr(bytes, 0, size);
}

// A name as a frame of a folded line; the data's strings are clean texts.
static void put_frame(const char *name, bool is_root, bool inlined, FILE *stream)
{
	if (!is_root)
		fputc(';', stream);
	else if (name[0] == '#') // readers would take the line for a comment
		name++;
	for (const char *c = name; *c; c++)
		fputc(*c == ';' ? ':' : *c, stream);
	fputs(!name[0] ? "[unknown]" : inlined ? "_[i]" : "", stream);
}

static void put_location(const struct pprof_data *data, const struct pprof_location *location,
                         bool is_root, FILE *stream)
{
	if (location->n_lines == 0) {
		fprintf(stream, "%s[0x%" PRIx64 "]", is_root ? "" : ";", location->address);
		return;
	}
	for (uint32_t i = location->n_lines; i-- > 0; is_root = false) {
		const struct pprof_line *line = &data->lines[location->first_line + i];
		const struct pprof_function *function = &data->functions[line->function];
		put_frame(pprof_data_string(data, function->name), is_root,
		          i + 1 < location->n_lines, stream);
	}
}

static struct error *put_stacks(const char *name, const struct pprof_data *data, FILE *stream)
{
	size_t value = pprof_data_type(data, "samples"), n_steps = 0;

	if (strcmp(pprof_data_string(data, data->types[value].type), "samples") != 0)
		value = pprof_data_type(data, pprof_data_string(data, data->default_type));
	for (size_t i = 0; i < data->n_samples; i++) {
		const struct pprof_sample *sample = &data->samples[i];
		const int64_t count = sample->values[value];
		if (count <= 0)
			continue;
		for (uint32_t j = sample->n_locations; j-- > 0;) {
			const uint64_t id = data->location_ids[sample->first_location + j];
			const struct pprof_location *location = &data->locations[id];
			n_steps += location->n_lines + 1;
			if (n_steps > MAX_STEPS)
				return error_create(EXIT_STATUS_TARGET, "%s is too large", name);
			put_location(data, location, j + 1 == sample->n_locations, stream);
		}
		fprintf(stream, "%s %" PRId64 "\n", sample->n_locations == 0 ? "[unknown]" : "",
		        count < MAX_COUNT ? count : MAX_COUNT);
	}
	return NULL;
}

struct error *pprof_fold(const char *name, const uint8_t *bytes, size_t size, char **ret_text,
                         size_t *ret_size)
{
	struct pprof_data data;
	char *text = NULL;
	struct error *error = pprof_data_read(name, bytes, size, MAX_BYTES, &data);

	if (error)
		return error;
	FILE *stream = open_memstream(&text, ret_size);
	error = stream ? put_stacks(name, &data, stream)
	               : error_create(EXIT_STATUS_OUTPUT, "no memory for a profile");
	if (stream) {
		const bool failed = ferror(stream) != 0;
		if ((fclose(stream) != 0 || failed) && !error)
			error = error_create(EXIT_STATUS_TARGET, "%s is too large", name);
	}
	pprof_data_deinit(&data);
	if (error)
		free(text);
	else
		*ret_text = text;
	return error;
}
