// SPDX-License-Identifier: MIT
// pprof_rows: reduces a profile to what is sent: each sample keeps few labels, and samples that are
// then equal are added up to one row.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof_data.h"

enum { PPROF_MAX_KEYS = 4 };

struct pprof_row {
	uint32_t first_location, n_locations; // as of a sample (pprof_data.h)
	bool cut; // the stack has more locations next to the root, which are left out
	uint32_t labels[PPROF_MAX_KEYS]; // the text of each key's label; 0: none
	int64_t values[PPROF_MAX_TYPES];
};

struct pprof_rows {
	struct pprof_data *data; // borrowed
	size_t n_keys;
	uint32_t keys[PPROF_MAX_KEYS];
	struct pprof_row *items;
	size_t count, capacity;
};

// Makes the rows, sorted by their labels. `keys` names the labels that are kept: NULL-terminated,
// at most PPROF_MAX_KEYS. Digits in the labels "thread" become '#', so that a pool's threads are
// one. Each stack keeps the `max_frames` frames next to the leaf. Adds strings to the profile.
void pprof_rows_init(struct pprof_rows *rows, struct pprof_data *data, const char *const *keys,
                     uint32_t max_frames);
void pprof_rows_deinit(struct pprof_rows *rows);

// Counts the rows from `from` on that have the same labels as row `from`.
size_t pprof_rows_alike(const struct pprof_rows *rows, size_t from);
