// SPDX-License-Identifier: MIT
// Folded stacks (any profiler's) as a page's tree: what they count has no time.
#include <string.h>

#include "memory.h"
#include "page.h"
#include "text.h"

enum { MAX_DIGITS = 18, MAX_FRAMES = 100000 };

// The largest sum of counts that is shown exactly; a larger one is scaled.
#define MAX_EXACT (INT64_MAX / PAGE_UNIT_NS / 2)

struct folded_line {
	const char *stack; // borrowed, not terminated
	size_t length;
	int64_t count;
};

// "root;leaf 12"; false: it is none.
static bool parse_line(const char *text, size_t length, struct folded_line *ret)
{
	size_t digits = 0;

	while (length > 0 && text[length - 1] == '\r')
		length--;
	while (digits < length && text[length - digits - 1] >= '0' &&
	       text[length - digits - 1] <= '9')
		digits++;
	if (digits == 0 || digits > MAX_DIGITS || length < digits + 2 ||
	    text[length - digits - 1] != ' ' || text[0] == '#')
		return false;
	*ret = (struct folded_line){.stack = text, .length = length - digits - 1};
	for (size_t i = length - digits; i < length; i++)
		ret->count = ret->count * 10 + (text[i] - '0');
	return true;
}

// Reads the next line; false: there are no more. *bad counts lines that are not stacks.
static bool next_line(const char **at, const char *end, struct folded_line *ret, uint64_t *bad)
{
	while (*at < end) {
		const char *line = *at, *newline = memchr(line, '\n', (size_t)(end - line));
		const size_t length = (size_t)((newline ? newline : end) - line);
		*at = line + length + 1;
		if (parse_line(line, length, ret))
			return true;
		*bad += length > 0;
	}
	return false;
}

static uint32_t add_stack(struct page *page, const struct folded_line *line)
{
	struct page_tree *tree = &page->tree;
	const char *at = line->stack, *end = at + line->length;
	uint32_t node = PAGE_ROOT;

	for (size_t n = 0; at < end && n < MAX_FRAMES; n++) {
		const char *semicolon = memchr(at, ';', (size_t)(end - at));
		const size_t length = (size_t)((semicolon ? semicolon : end) - at);
		_cleanup_free_ char *name = text_clean(at, length, TEXT_UNLIMITED);
		const struct page_frame frame = {
		    .name = string_table_intern(&tree->names, name),
		    .file = string_table_intern(&tree->files, ""),
		    .module = string_table_intern(&tree->modules, ""),
		};
		node = page_tree_child(tree, node, page_tree_frame(tree, &frame));
		at += length + 1;
	}
	return at < end ? page_add_cut(page, node, MAX_FRAMES) : node;
}

static int64_t sum_counts(const char *text, size_t size)
{
	struct folded_line line;
	uint64_t bad = 0;
	int64_t sum = 0;

	for (const char *at = text, *end = text + size; next_line(&at, end, &line, &bad);)
		sum = line.count > PAGE_MAX_SUM_NS - sum ? PAGE_MAX_SUM_NS : sum + line.count;
	return sum;
}

uint64_t page_add_folded(struct page *page, const char *text, size_t size)
{
	const int64_t sum = sum_counts(text, size);
	struct folded_line line;
	uint64_t bad = 0;

	page->count_ns = sum <= MAX_EXACT ? PAGE_UNIT_NS : 1;
	for (const char *at = text, *end = text + size; next_line(&at, end, &line, &bad);)
		page_add_self(page, add_stack(page, &line), line.count, page->count_ns);
	page_add_self_runs(page);
	return bad;
}
