// SPDX-License-Identifier: MIT
// pprof_rows: the samples of a profile as they are sent: few labels, and what is then the same
// once.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof_data.h"

enum { PPROF_MAX_KEYS = 4 };

struct pprof_row {
	uint32_t first_location, n_locations; // as of a sample, but for...
	bool cut; // ...more of them, near the root, of which there are too many
	uint32_t labels[PPROF_MAX_KEYS]; // the texts, one for each key; 0: none
	int64_t values[PPROF_MAX_TYPES];
};

struct pprof_rows {
	struct pprof_data *data; // borrowed
	size_t n_keys;
	uint32_t keys[PPROF_MAX_KEYS];
	struct pprof_row *items;
	size_t count, capacity;
};

// Makes the rows, sorted by their labels. `keys`: of the labels that stay, NULL-terminated, at most
// PPROF_MAX_KEYS; digits in those of "thread" become '#', so that a pool's threads are one. Of each
// stack `max_frames` stay, those at the leaf. The profile gets new strings.
void pprof_rows_init(struct pprof_rows *rows, struct pprof_data *data, const char *const *keys,
                     uint32_t max_frames);
void pprof_rows_deinit(struct pprof_rows *rows);

// How many rows from `from` on have the same labels as that one.
size_t pprof_rows_alike(const struct pprof_rows *rows, size_t from);
