// SPDX-License-Identifier: MIT
// pprof_encoder: writes a pprof file, gzipped, one message after the other
// (https://github.com/google/pprof/blob/main/proto/profile.proto).
//
// The file is never held as a whole. First come the samples, which number the locations that they
// use; then those locations, which number functions and mappings; then these; then the strings that
// all of them named. So only what samples need is written, and all ids are 1..n in the order of the
// file.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "gzip.h"
#include "pprof_data.h"
#include "pprof_fields.h"
#include "protobuf.h"
#include "string_table.h"

struct error;

struct pprof_encoder {
	struct gzip gzip;
	size_t raw_size;             // of what is written, before compression
	struct string_table strings; // of the file; the numbers below are theirs
	struct protobuf message;     // that is being built
	struct protobuf part;        // of it; empty between two calls
	struct protobuf packed;      // numbers for pprof_add_packed
};

// The ids of a table's items. A zeroed one is empty.
struct pprof_ids {
	uint32_t *ids; // by position in the table; 0: none yet
	size_t n_ids, ids_capacity;
	uint32_t *positions; // by id - 1
	size_t count, capacity;
};

// Begins a file. On success pprof_encoder_finish must follow.
struct error *pprof_encoder_init(struct pprof_encoder *encoder, FILE *stream);

// Writes the strings and ends the file. Errors of the stream stay in its error indicator.
void pprof_encoder_finish(struct pprof_encoder *encoder);

// Returns the number of the string, which is cleaned.
uint32_t pprof_string(struct pprof_encoder *encoder, const char *text);

// Returns the item's id, a new one at its first use.
uint32_t pprof_id(struct pprof_ids *ids, size_t position);
void pprof_ids_deinit(struct pprof_ids *ids);

// Write a field of the profile itself.
void pprof_put_int(struct pprof_encoder *encoder, uint32_t field, uint64_t value);
void pprof_put_type(struct pprof_encoder *encoder, uint32_t field, const char *type,
                    const char *unit);

// Adds what is in `packed` to the message, and empties it.
void pprof_add_packed(struct pprof_encoder *encoder, uint32_t field);

// Adds a label with a text, or, if `text` is NULL, with a number. The number must not be 0: without
// a unit such a label is lost when it is read.
void pprof_add_label(struct pprof_encoder *encoder, const char *key, const char *text,
                     uint64_t number);

void pprof_add_line(struct pprof_encoder *encoder, uint32_t function_id, uint64_t line);

// Writes the message that was built: a sample or a location.
void pprof_put_message(struct pprof_encoder *encoder, uint32_t field);

void pprof_put_function(struct pprof_encoder *encoder, const struct pprof_function *function);
void pprof_put_mapping(struct pprof_encoder *encoder, const struct pprof_mapping *mapping);
