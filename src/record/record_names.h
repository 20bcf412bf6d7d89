// record_names: the names of a recording's locations, as records (record.h).
#pragma once

#include <stddef.h>

struct protobuf;
struct symbols;

// Appends a record of the functions from `from` to before `after`; none if there are none.
void record_put_functions(struct protobuf *to, const struct symbols *symbols, size_t from,
                          size_t after);

// Appends what a record of lines says of one location, which has a name.
void record_put_lines(struct protobuf *record, const struct symbols *symbols, size_t location);

// The number of functions that must be written before the location's lines, n_functions or more.
size_t record_functions_of(const struct symbols *symbols, size_t location, size_t n_functions);
