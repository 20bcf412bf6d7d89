// SPDX-License-Identifier: MIT
#include "pprof_rows.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "push_labels.h"
#include "text.h"

struct making {
	struct pprof_rows *rows;
	struct hash_index index; // of rows
};

static void mask_digits(char *name)
{
	char *to = name;

	for (const char *from = name; *from; from++)
		if (!isdigit((unsigned char)*from))
			*to++ = *from;
		else if (to == name || to[-1] != '#')
			*to++ = '#';
	*to = '\0';
}

static uint32_t kept_text(struct pprof_rows *rows, uint32_t key, uint32_t text)
{
	struct string_table *strings = &rows->data->strings;
	const size_t length = strlen(strings->items[text]);
	const bool is_thread = strcmp(strings->items[key], "thread") == 0;

	if (!is_thread && length <= PUSH_MAX_LABEL_BYTES)
		return text;
	_cleanup_free_ char *kept = text_clean(strings->items[text], length, PUSH_MAX_LABEL_BYTES);
	if (is_thread)
		mask_digits(kept);
	return string_table_intern(strings, kept);
}

static void keep_labels(struct pprof_rows *rows, const struct pprof_sample *sample,
                        struct pprof_row *row)
{
	for (uint32_t i = 0; i < sample->n_labels; i++) {
		const struct pprof_label label = rows->data->labels[sample->first_label + i];
		for (size_t k = 0; k < rows->n_keys; k++)
			if (rows->keys[k] == label.key)
				row->labels[k] = kept_text(rows, label.key, label.text);
	}
}

static const uint64_t *row_stack(const struct pprof_rows *rows, const struct pprof_row *row)
{
	return rows->data->location_ids + row->first_location;
}

static bool row_equal(const void *context, uint32_t i, const void *key)
{
	const struct pprof_rows *rows = context;
	const struct pprof_row *a = &rows->items[i], *b = key;

	return a->n_locations == b->n_locations && a->cut == b->cut &&
	       memcmp(a->labels, b->labels, sizeof(a->labels)) == 0 &&
	       (a->n_locations == 0 || memcmp(row_stack(rows, a), row_stack(rows, b),
	                                      a->n_locations * sizeof(uint64_t)) == 0);
}

static void add_row(struct making *making, const struct pprof_row *row)
{
	struct pprof_rows *rows = making->rows;
	const uint64_t hash = hash_mix(
	    hash_bytes(row->labels, sizeof(row->labels)),
	    row->n_locations ? hash_bytes(row_stack(rows, row), row->n_locations * sizeof(uint64_t))
	                     : 0);
	const uint32_t known = hash_index_find(&making->index, hash, row_equal, rows, row);

	if (known == HASH_NONE) {
		hash_index_insert(&making->index, hash, (uint32_t)rows->count);
		*array_push(rows->items, rows->count, rows->capacity) = *row;
		return;
	}
	for (size_t i = 0; i < rows->data->n_types; i++) // unsigned: a stranger's may overflow
		rows->items[known].values[i] =
		    (int64_t)((uint64_t)rows->items[known].values[i] + (uint64_t)row->values[i]);
}

static int compare_labels(const void *a, const void *b)
{
	const struct pprof_row *x = a, *y = b;

	for (size_t i = 0; i < PPROF_MAX_KEYS; i++)
		if (x->labels[i] != y->labels[i])
			return x->labels[i] < y->labels[i] ? -1 : 1;
	// Their order in the file: a window is split in the same way at each try.
	return x->first_location < y->first_location ? -1 : x->first_location > y->first_location;
}

void pprof_rows_init(struct pprof_rows *rows, struct pprof_data *data, const char *const *keys,
                     uint32_t max_frames)
{
	struct making making = {.rows = rows};

	*rows = (struct pprof_rows){.data = data};
	for (; keys[rows->n_keys]; rows->n_keys++)
		rows->keys[rows->n_keys] = string_table_intern(&data->strings, keys[rows->n_keys]);
	for (size_t i = 0; i < data->n_samples; i++) {
		const struct pprof_sample *sample = &data->samples[i];
		struct pprof_row row = {
		    .first_location = sample->first_location,
		    .n_locations = sample->n_locations,
		};
		if (row.n_locations > max_frames) {
			row.cut = true;
			row.n_locations = max_frames - 1; // and one that says so
		}
		memcpy(row.values, sample->values, sizeof(row.values));
		keep_labels(rows, sample, &row);
		add_row(&making, &row);
	}
	hash_index_deinit(&making.index);
	if (rows->count > 0)
		qsort(rows->items, rows->count, sizeof(*rows->items), compare_labels);
}

void pprof_rows_deinit(struct pprof_rows *rows)
{
	free(rows->items);
	*rows = (struct pprof_rows){0};
}

size_t pprof_rows_alike(const struct pprof_rows *rows, size_t from)
{
	size_t to = from;

	while (to < rows->count && memcmp(rows->items[to].labels, rows->items[from].labels,
	                                  sizeof(rows->items[to].labels)) == 0)
		to++;
	return to - from;
}
