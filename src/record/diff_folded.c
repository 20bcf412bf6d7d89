// SPDX-License-Identifier: MIT
#include "diff_folded.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "folded_line.h"
#include "hash.h"
#include "memory.h"

#define MAX_SCALED 1e18

struct lines {
	struct folded_line *items; // each stack once
	size_t count, capacity;
	struct hash_index index; // of the stacks
	uint64_t n_bad;
};

static int compare(const void *a_pointer, const void *b_pointer)
{
	const struct folded_line *a = a_pointer, *b = b_pointer;
	const size_t common = a->length < b->length ? a->length : b->length;
	const int order = memcmp(a->stack, b->stack, common);

	return order ? order : (a->length > b->length) - (a->length < b->length);
}

static bool is_stack(const void *context, uint32_t id, const void *key)
{
	const struct lines *lines = context;

	return compare(&lines->items[id], key) == 0;
}

// Adds the line to those of its stack.
static void add(struct lines *lines, const struct folded_line *line)
{
	const uint64_t hash = hash_bytes(line->stack, line->length);
	const uint32_t id = hash_index_find(&lines->index, hash, is_stack, lines, line);

	if (id != HASH_NONE) {
		int64_t *count = &lines->items[id].count;
		if (__builtin_add_overflow(*count, line->count, count))
			*count = INT64_MAX;
		return;
	}
	hash_index_insert(&lines->index, hash, (uint32_t)lines->count);
	*array_push(lines->items, lines->count, lines->capacity) = *line;
}

static struct error *parse(const struct folded_text *text, struct lines *ret)
{
	const char *end = text->text + text->size;

	for (const char *at = text->text; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const size_t length = (size_t)((newline ? newline : end) - at);
		struct folded_line line;
		if (!folded_line_parse(at, length, &line))
			ret->n_bad += length > 0;
		else
			add(ret, &line);
		at += length + 1;
	}
	if (ret->count == 0 && ret->n_bad > 0)
		return error_create(EXIT_STATUS_TARGET, FOLDED_NONE, text->name);
	hash_index_deinit(&ret->index);
	if (ret->count > 0)
		qsort(ret->items, ret->count, sizeof(*ret->items), compare);
	return NULL;
}

static void lines_deinit(struct lines *lines)
{
	hash_index_deinit(&lines->index);
	free(lines->items);
}

static double total(const struct lines *lines)
{
	double sum = 0;

	for (size_t i = 0; i < lines->count; i++)
		sum += (double)lines->items[i].count;
	return sum;
}

static void put(FILE *stream, const struct folded_line *line, int64_t a, int64_t b)
{
	fwrite(line->stack, 1, line->length, stream);
	fprintf(stream, " %" PRId64 " %" PRId64 "\n", a, b);
}

static void put_all(const struct lines *a, const struct lines *b, FILE *stream)
{
	size_t i = 0, k = 0;

	while (i < a->count || k < b->count) {
		const int order = i == a->count   ? 1
		                  : k == b->count ? -1
		                                  : compare(&a->items[i], &b->items[k]);
		const struct folded_line *line = order <= 0 ? &a->items[i] : &b->items[k];
		put(stream, line, order <= 0 ? a->items[i].count : 0,
		    order >= 0 ? b->items[k].count : 0);
		i += order <= 0;
		k += order >= 0;
	}
}

static int64_t scale(int64_t count, double factor)
{
	const double scaled = (double)count * factor;

	return scaled < MAX_SCALED ? (int64_t)scaled : (int64_t)MAX_SCALED;
}

static void put_diff(struct lines *a, const struct lines *b, bool normalize, FILE *stream)
{
	const double a_total = total(a), b_total = total(b);

	for (size_t i = 0; i < a->count && normalize && a_total > 0; i++)
		a->items[i].count = scale(a->items[i].count, b_total / a_total);
	put_all(a, b, stream);
}

struct error *diff_folded(const struct folded_text *a, const struct folded_text *b, bool normalize,
                          FILE *stream, uint64_t *ret_bad)
{
	struct lines a_lines = {0}, b_lines = {0};
	struct error *error = parse(a, &a_lines);

	if (!error)
		error = parse(b, &b_lines);
	if (!error)
		put_diff(&a_lines, &b_lines, normalize, stream);
	*ret_bad = a_lines.n_bad + b_lines.n_bad;
	lines_deinit(&a_lines);
	lines_deinit(&b_lines);
	return error;
}
