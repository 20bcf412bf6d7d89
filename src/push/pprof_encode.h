// SPDX-License-Identifier: MIT
// pprof_encode: some of a profile's rows as a pprof file.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pprof_rows;

struct pprof_encoding {
	bool labels;       // the rows' labels are written
	bool server_names; // functions that we could not name are left to the server: an address
	                   // and a build ID are sent
};

struct pprof_file {
	uint8_t *bytes; // compressed; malloc
	size_t size;
	size_t raw_size; // before that
};

// The rows from `from` to before `to`. The caller frees ret->bytes.
struct error *pprof_encode(const struct pprof_rows *rows, size_t from, size_t to,
                           const struct pprof_encoding *encoding, struct pprof_file *ret);
