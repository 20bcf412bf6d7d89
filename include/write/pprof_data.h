// SPDX-License-Identifier: MIT
// pprof_data: reads back a pprof profile, from any profiler: to be shown, or to be reduced, split
// and sent on.
//
// The file may be from anybody: what is read is bounded, and what does not fit together is an
// error.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hash.h"
#include "string_table.h"

struct error;

enum { PPROF_MAX_TYPES = 16 }; // of values

struct pprof_type {
	uint32_t type, unit; // strings, as all names here
};

struct pprof_label {
	uint32_t key, text; // text 0: it is a number, which is not kept
};

struct pprof_line {
	uint64_t function; // position
	int64_t line;
};

struct pprof_location {
	uint64_t id;
	uint64_t mapping; // position + 1; 0: none
	uint64_t address;
	uint32_t first_line, n_lines;
};

struct pprof_function {
	uint64_t id;
	uint32_t name, system_name, file;
	int64_t start_line;
};

struct pprof_mapping {
	uint64_t id, start, limit, offset;
	uint32_t file, build_id;
	uint64_t has[4]; // functions, files, lines, inlined calls
};

struct pprof_sample {
	uint32_t first_location, n_locations; // positions in location_ids, leaf first
	uint32_t first_label, n_labels;
	uint32_t n_values; // as many as there are types
	int64_t values[PPROF_MAX_TYPES];
};

struct pprof_data {
	size_t raw_size;             // of the file, before compression
	struct string_table strings; // clean text; the first is ""
	struct pprof_type types[PPROF_MAX_TYPES];
	size_t n_types;
	struct pprof_type period_type;
	int64_t time_ns, duration_ns, period;
	uint32_t default_type;
	struct pprof_sample *samples;
	size_t n_samples, samples_capacity;
	uint64_t *location_ids; // positions in locations
	size_t n_location_ids, location_ids_capacity;
	struct pprof_label *labels;
	size_t n_labels, labels_capacity;
	struct pprof_location *locations;
	size_t n_locations, locations_capacity;
	struct pprof_line *lines;
	size_t n_lines, lines_capacity;
	struct pprof_function *functions;
	size_t n_functions, functions_capacity;
	struct pprof_mapping *mappings;
	size_t n_mappings, mappings_capacity;
	uint32_t *comments;
	size_t n_comments, comments_capacity;
};

// Reads a profile, compressed with gzip or not, of at most `max_bytes` when unpacked. `name` is for
// messages. On success the caller owns *ret.
struct error *pprof_data_read(const char *name, const void *bytes, size_t size, size_t max_bytes,
                              struct pprof_data *ret);
void pprof_data_deinit(struct pprof_data *data);

const char *pprof_data_string(const struct pprof_data *data, uint32_t string);

// Returns the position of the type of values with that name, or of the last one, which is shown by
// default.
size_t pprof_data_type(const struct pprof_data *data, const char *name);
