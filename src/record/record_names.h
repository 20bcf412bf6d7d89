// SPDX-License-Identifier: MIT
// record_names: writes the names of a recording's locations as records (record.h).
#pragma once

#include <stddef.h>

struct module;
struct protobuf;
struct symbols;

// Appends a record of the functions from `from` to before `after`, if there are any.
void record_put_functions(struct protobuf *to, const struct symbols *symbols, size_t from,
                          size_t after);

// Appends records of the functions from *n_written on that a runtime has named, and adds how many
// to *n_written; nothing if the module is not a runtime's. `record` is an empty buffer, used to
// build them.
void record_put_frame_functions(struct protobuf *to, struct protobuf *record,
                                const struct module *module, size_t *n_written);

// Appends what a record of lines says of a location that has a name.
void record_put_lines(struct protobuf *record, const struct symbols *symbols, size_t location);

// Returns how many functions must have been written before the location's lines: n_functions or
// more.
size_t record_functions_of(const struct symbols *symbols, size_t location, size_t n_functions);
