// SPDX-License-Identifier: MIT
// record_names: the names of a recording's locations, as records (record.h).
#pragma once

#include <stddef.h>

struct module;
struct protobuf;
struct symbols;

// Appends a record of the functions from `from` to before `after`; none if there are none.
void record_put_functions(struct protobuf *to, const struct symbols *symbols, size_t from,
                          size_t after);

// Appends records of the functions that a runtime has named, of those from *n_written on, and
// counts them in it; `record` is empty, and room to build them in. None if the module is no
// runtime's.
void record_put_frame_functions(struct protobuf *to, struct protobuf *record,
                                const struct module *module, size_t *n_written);

// Appends what a record of lines says of one location, which has a name.
void record_put_lines(struct protobuf *record, const struct symbols *symbols, size_t location);

// The number of functions that must be written before the location's lines, n_functions or more.
size_t record_functions_of(const struct symbols *symbols, size_t location, size_t n_functions);
