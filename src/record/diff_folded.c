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
#define KERNEL_SUFFIX "_[k]" // of a frame of the kernel (frame_name_wait)

enum { MAX_FRAMES = 1000 }; // of a stack, from its root, whose functions are added up

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
	uint64_t n_good = 0;
	const uint64_t n_bad_before = ret->n_bad;

	for (const char *at = text->text; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const size_t length = (size_t)((newline ? newline : end) - at);
		struct folded_line line;
		if (folded_line_parse(at, length, &line)) {
			add(ret, &line);
			n_good++;
		} else {
			ret->n_bad += length > 0;
		}
		at += length + 1;
	}
	if (n_good == 0 && ret->n_bad > n_bad_before)
		return error_create(EXIT_STATUS_TARGET, FOLDED_NONE, text->name);
	return NULL;
}

static struct error *parse_side(const struct folded_side *side, struct lines *ret)
{
	struct error *error = NULL;

	for (size_t i = 0; i < side->n && !error; i++)
		error = parse(&side->texts[i], ret);
	hash_index_deinit(&ret->index);
	if (ret->count > 0)
		qsort(ret->items, ret->count, sizeof(*ret->items), compare);
	return error;
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

static void put_all(const struct folded_diff *diff, const struct lines *a, const struct lines *b,
                    FILE *stream)
{
	size_t i = 0, k = 0;

	while (i < a->count || k < b->count) {
		const int order = i == a->count   ? 1
		                  : k == b->count ? -1
		                                  : compare(&a->items[i], &b->items[k]);
		const struct folded_line *line = order <= 0 ? &a->items[i] : &b->items[k];
		const int64_t after = order >= 0 ? b->items[k].count : 0;
		const bool differs =
		    !diff->differs || diff->differs(diff->context, line->stack, line->length);
		put(stream, line, !differs ? after : order <= 0 ? a->items[i].count : 0, after);
		i += order <= 0;
		k += order >= 0;
	}
}

static int64_t scale(int64_t count, double factor)
{
	const double scaled = (double)count * factor;

	return scaled < MAX_SCALED ? (int64_t)scaled : (int64_t)MAX_SCALED;
}

static void put_diff(const struct folded_diff *diff, struct lines *a, const struct lines *b,
                     FILE *stream)
{
	const double a_total = total(a), b_total = total(b);

	for (size_t i = 0; i < a->count && diff->normalize && a_total > 0; i++)
		a->items[i].count = scale(a->items[i].count, b_total / a_total);
	put_all(diff, a, b, stream);
}

static struct error *read_sides(const struct folded_diff *diff, struct lines *ret_a,
                                struct lines *ret_b)
{
	struct error *error = parse_side(&diff->before, ret_a);

	return error ? error : parse_side(&diff->after, ret_b);
}

struct error *diff_folded(const struct folded_diff *diff, FILE *stream, uint64_t *ret_bad)
{
	struct lines a = {0}, b = {0};
	struct error *error = read_sides(diff, &a, &b);

	if (!error)
		put_diff(diff, &a, &b, stream);
	*ret_bad = a.n_bad + b.n_bad;
	lines_deinit(&a);
	lines_deinit(&b);
	return error;
}

bool folded_is_kernel(const char *frame, size_t length)
{
	const size_t size = strlen(KERNEL_SUFFIX);

	return length >= size && memcmp(frame + length - size, KERNEL_SUFFIX, size) == 0;
}

static void add_function(struct folded_functions *functions, const char *frame, size_t length,
                         int side, double count)
{
	_cleanup_free_ char *name = memory_strndup(frame, length);
	const uint32_t id = string_table_intern_clean(&functions->names, name);

	if (id == functions->count)
		*array_push(functions->items, functions->count, functions->capacity) =
		    (struct folded_function){0};
	functions->items[id].counts[side] += count;
}

// True if the frame is in the stack before its position there: a recursion.
static bool is_again(const struct folded_line *line, const char *frame, size_t length)
{
	for (const char *at = line->stack; at < frame;) {
		const char *end = memchr(at, ';', (size_t)(frame - at));
		if (!end)
			return false;
		if ((size_t)(end - at) == length && memcmp(at, frame, length) == 0)
			return true;
		at = end + 1;
	}
	return false;
}

static void add_functions(struct folded_functions *functions, const struct lines *lines, int side)
{
	functions->totals[side] = total(lines);
	for (size_t i = 0; i < lines->count; i++) {
		const struct folded_line *line = &lines->items[i];
		const char *end = line->stack + line->length;
		size_t n = 0;
		for (const char *at = line->stack; at < end && n < MAX_FRAMES; n++) {
			const char *next = memchr(at, ';', (size_t)(end - at)) ?: end;
			const size_t length = (size_t)(next - at);
			if (length > 0 && !folded_is_kernel(at, length) &&
			    !is_again(line, at, length))
				add_function(functions, at, length, side, (double)line->count);
			at = next + 1;
		}
	}
}

struct error *folded_functions_read(const struct folded_diff *diff, struct folded_functions *ret,
                                    uint64_t *ret_bad)
{
	struct lines a = {0}, b = {0};
	struct error *error = read_sides(diff, &a, &b);

	*ret = (struct folded_functions){0};
	if (!error) {
		add_functions(ret, &a, 0);
		add_functions(ret, &b, 1);
	}
	*ret_bad = a.n_bad + b.n_bad;
	lines_deinit(&a);
	lines_deinit(&b);
	return error;
}

void folded_functions_deinit(struct folded_functions *functions)
{
	string_table_deinit(&functions->names);
	free(functions->items);
}
