// SPDX-License-Identifier: MIT
// pprof_encode: writes some of a profile's rows as a pprof file.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pprof_rows;

struct pprof_encoding {
	bool labels;       // writes the rows' labels
	bool server_names; // the server names functions that we could not name, by the address and
	                   // build ID that are written for them
};

struct pprof_file {
	uint8_t *bytes; // compressed; malloc
	size_t size;
	size_t raw_size; // before compression
};

// Writes the rows from `from` to before `to`. The caller frees ret->bytes.
struct error *pprof_encode(const struct pprof_rows *rows, size_t from, size_t to,
                           const struct pprof_encoding *encoding, struct pprof_file *ret);
