// SPDX-License-Identifier: MIT
#include "diff_folded.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum { MAX_DIGITS = 18 }; // so that sums of any file's counts fit

#define MAX_SCALED 1e18

struct line {
	const char *stack; // borrowed, not terminated
	size_t length;
	uint64_t count;
};

struct lines {
	struct line *items; // sorted by stack, each once
	size_t count, capacity;
	uint64_t n_bad;
};

// "root;leaf 12"; false: it is none.
static bool parse_line(const char *text, size_t length, struct line *ret)
{
	size_t digits = 0;

	while (digits < length && text[length - digits - 1] >= '0' &&
	       text[length - digits - 1] <= '9')
		digits++;
	if (digits == 0 || digits > MAX_DIGITS || length < digits + 2 ||
	    text[length - digits - 1] != ' ' || text[0] == '#')
		return false;
	*ret = (struct line){.stack = text, .length = length - digits - 1};
	for (size_t i = length - digits; i < length; i++)
		ret->count = ret->count * 10 + (uint64_t)(text[i] - '0');
	return true;
}

static int compare(const void *a_pointer, const void *b_pointer)
{
	const struct line *a = a_pointer, *b = b_pointer;
	const size_t common = a->length < b->length ? a->length : b->length;
	const int order = memcmp(a->stack, b->stack, common);

	return order ? order : (a->length > b->length) - (a->length < b->length);
}

static void sort_and_merge(struct lines *lines)
{
	size_t n = 0;

	if (lines->count > 0)
		qsort(lines->items, lines->count, sizeof(*lines->items), compare);
	for (size_t i = 0; i < lines->count; i++)
		if (n > 0 && compare(&lines->items[n - 1], &lines->items[i]) == 0)
			lines->items[n - 1].count += lines->items[i].count;
		else
			lines->items[n++] = lines->items[i];
	lines->count = n;
}

static void parse(const char *text, size_t size, struct lines *ret)
{
	*ret = (struct lines){0};
	for (const char *at = text, *end = text + size; at < end;) {
		const char *newline = memchr(at, '\n', end - at);
		const size_t length = (newline ? newline : end) - at;
		struct line line;
		if (parse_line(at, length, &line))
			*array_push(ret->items, ret->count, ret->capacity) = line;
		else if (length > 0)
			ret->n_bad++;
		at += length + 1;
	}
	sort_and_merge(ret);
}

static double total(const struct lines *lines)
{
	double sum = 0;

	for (size_t i = 0; i < lines->count; i++)
		sum += (double)lines->items[i].count;
	return sum;
}

static void put(FILE *stream, const struct line *line, uint64_t a, uint64_t b)
{
	fwrite(line->stack, 1, line->length, stream);
	fprintf(stream, " %" PRIu64 " %" PRIu64 "\n", a, b);
}

static void put_all(const struct lines *a, const struct lines *b, FILE *stream)
{
	size_t i = 0, k = 0;

	while (i < a->count || k < b->count) {
		const int order = i == a->count   ? 1
		                  : k == b->count ? -1
		                                  : compare(&a->items[i], &b->items[k]);
		const struct line *line = order <= 0 ? &a->items[i] : &b->items[k];
		put(stream, line, order <= 0 ? a->items[i].count : 0,
		    order >= 0 ? b->items[k].count : 0);
		i += order <= 0;
		k += order >= 0;
	}
}

static uint64_t scale(uint64_t count, double factor)
{
	const double scaled = (double)count * factor;

	return scaled < MAX_SCALED ? (uint64_t)scaled : (uint64_t)MAX_SCALED;
}

uint64_t diff_folded(const char *a_text, size_t a_size, const char *b_text, size_t b_size,
                     bool normalize, FILE *stream)
{
	struct lines a, b;

	parse(a_text, a_size, &a);
	parse(b_text, b_size, &b);
	const double a_total = total(&a), b_total = total(&b);
	for (size_t i = 0; i < a.count && normalize && a_total > 0; i++)
		a.items[i].count = scale(a.items[i].count, b_total / a_total);
	put_all(&a, &b, stream);
	free(a.items);
	free(b.items);
	return a.n_bad + b.n_bad;
}
