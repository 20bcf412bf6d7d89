// SPDX-License-Identifier: MIT
// Folded stacks (any profiler's) as a page's tree: they have counts, not time.
#include <stdlib.h>
#include <string.h>

#include "folded_line.h"
#include "memory.h"
#include "page.h"
#include "text.h"

enum { MAX_FRAMES = 100000 };

// The page keeps times alone, so a count becomes one: PAGE_UNIT_NS, or 1 ns if the sum of all
// counts is larger than this.
#define MAX_EXACT (INT64_MAX / PAGE_UNIT_NS / 2)

// A frame of the last stack: where it ends in its line, and its node.
struct step {
	size_t end;
	uint32_t node;
};

// Adds a name that was not found as it is in the text: the tree has cleaned names only.
static uint32_t add_name(struct page_tree *tree, const struct string_key *key)
{
	_cleanup_free_ char *clean = text_clean(key->bytes, key->length, TEXT_UNLIMITED);

	return string_table_intern(&tree->names, clean);
}

static uint32_t frame_of(struct page_folded *folded, uint32_t name)
{
	struct page_tree *tree = &folded->page->tree;

	while (folded->n_frames <= name)
		*array_push(folded->frames, folded->n_frames, folded->frames_capacity) = UINT32_MAX;
	if (folded->frames[name] == UINT32_MAX)
		folded->frames[name] =
		    page_tree_frame(tree, &(struct page_frame){
		                              .name = name,
		                              .file = string_table_intern(&tree->files, ""),
		                              .module = string_table_intern(&tree->modules, ""),
		                          });
	return folded->frames[name];
}

// Returns the length of the common prefix, `most` at most.
static size_t common_length(const char *a, const char *b, size_t most)
{
	size_t n = 0;

	while (n + 8 <= most && memcmp(a + n, b + n, 8) == 0)
		n += 8;
	while (n < most && a[n] == b[n])
		n++;
	return n;
}

// Drops the frames of the last stack that this one does not begin with. The others need not be
// looked up again: files are often sorted.
static void keep_common(struct page_folded *folded, const struct folded_line *line)
{
	const size_t shorter =
	    line->length < folded->last_length ? line->length : folded->last_length;
	const size_t common = common_length(folded->last, line->stack, shorter);

	// The semicolon behind a frame must be common, too.
	while (folded->n_steps > 0 && folded->steps[folded->n_steps - 1].end >= common)
		folded->n_steps--;
	folded->last = line->stack;
	folded->last_length = line->length;
}

// Splits the names of `line` from `at` on, as many as fit. Returns how many there are.
static size_t split(const struct folded_line *line, size_t at, struct string_key *keys, size_t most)
{
	size_t n = 0;

	while (at < line->length && n < most) {
		const char *start = line->stack + at,
		           *semicolon = memchr(start, ';', line->length - at);
		const size_t length = semicolon ? (size_t)(semicolon - start) : line->length - at;
		keys[n++] = (struct string_key){start, length};
		at += length + 1;
	}
	return n;
}

// Adds the stack's next nodes below the last step: as many as are looked up together.
static void add_steps(struct page_folded *folded, const struct folded_line *line, struct step *last)
{
	struct page_tree *tree = &folded->page->tree;
	struct string_key keys[STRING_TABLE_MAX_KEYS] = {0};
	uint32_t names[STRING_TABLE_MAX_KEYS];
	const size_t room = MAX_FRAMES - folded->n_steps;
	const size_t n = split(line, last->end + 1, keys,
	                       room < STRING_TABLE_MAX_KEYS ? room : STRING_TABLE_MAX_KEYS);

	string_table_find(&tree->names, keys, n, names);
	for (size_t i = 0; i < n; i++) {
		const uint32_t name = names[i] == HASH_NONE ? add_name(tree, &keys[i]) : names[i];
		last->node = page_tree_child(tree, last->node, frame_of(folded, name));
		last->end += 1 + keys[i].length;
		*array_push(folded->steps, folded->n_steps, folded->steps_capacity) = *last;
	}
}

// Adds the stack's nodes to the tree. Returns the last one.
static uint32_t add_stack(struct page_folded *folded, const struct folded_line *line)
{
	struct step last = {.end = SIZE_MAX, .node = PAGE_ROOT}; // end + 1: where the text begins

	keep_common(folded, line);
	if (folded->n_steps > 0)
		last = folded->steps[folded->n_steps - 1];
	while (last.end + 1 < line->length && folded->n_steps < MAX_FRAMES)
		add_steps(folded, line, &last);
	return last.end + 1 < line->length ? page_add_cut(folded->page, last.node, MAX_FRAMES)
	                                   : last.node;
}

// Makes a count of one a unit of the page, so that it is shown exactly.
static void scale_up(struct page *page)
{
	for (size_t i = 0; i < page->tree.n_nodes; i++)
		page->tree.nodes[i].self_ns *= PAGE_UNIT_NS;
	page->end_ns *= PAGE_UNIT_NS;
	page->count_ns = PAGE_UNIT_NS;
}

// Copies the last stack: its text is valid for one call only.
static void keep_last(struct page_folded *folded)
{
	folded->kept = memory_grow(folded->kept, &folded->kept_capacity, folded->last_length, 1);
	if (folded->last_length > 0)
		memmove(folded->kept, folded->last, folded->last_length);
	folded->last = folded->kept;
}

void page_folded_begin(struct page_folded *folded, struct page *page)
{
	*folded = (struct page_folded){.page = page};
	page->count_ns = 1;
}

void page_folded_add(struct page_folded *folded, const char *text, size_t size)
{
	struct page *page = folded->page;
	struct folded_line line;

	for (const char *at = text, *end = text + size; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const size_t length = (size_t)((newline ? newline : end) - at);
		if (folded_line_parse(at, length, &line))
			page_add_self(page, add_stack(folded, &line), line.count, page->count_ns);
		else
			folded->n_bad += length > 0;
		at += length + 1;
	}
	keep_last(folded);
}

uint64_t page_folded_end(struct page_folded *folded)
{
	if (folded->page->end_ns <= MAX_EXACT)
		scale_up(folded->page);
	page_add_self_runs(folded->page);
	free(folded->frames);
	free(folded->steps);
	free(folded->kept);
	return folded->n_bad;
}
