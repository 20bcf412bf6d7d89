// SPDX-License-Identifier: MIT
// Folded stacks (any profiler's) as a page's tree: they have counts, not time.
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "page.h"
#include "text.h"

enum { MAX_DIGITS = 18, MAX_FRAMES = 100000 };

// The largest sum of counts of which each is one of the page's units; of a larger one each is 1 ns.
#define MAX_EXACT (INT64_MAX / PAGE_UNIT_NS / 2)

struct folded_line {
	const char *stack; // borrowed, not terminated
	size_t length;
	int64_t count;
};

// A function's name as it stands in the text, and its frame.
struct name {
	const char *bytes; // borrowed, not terminated
	size_t length;
	uint32_t frame;
};

// A frame of the last stack: where it ends in its line, and its node.
struct step {
	size_t end;
	uint32_t node;
};

// The state while folded stacks are added.
struct folded {
	struct page *page;
	struct name *names;
	size_t n_names, names_capacity;
	struct hash_index index; // of names
	struct folded_line last;
	struct step *steps; // of `last`
	size_t n_steps, steps_capacity;
};

// Parses a line such as "root;leaf 12". False: it is not a folded stack.
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

// Reads the next line that is a stack. False: there is none. *bad counts the lines that are not.
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

static bool name_equal(const void *context, uint32_t id, const void *key)
{
	const struct folded *folded = context;
	const struct name *a = &folded->names[id], *b = key;

	return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

// Finds or adds the name's frame. If its bytes are clean, later names are compared with the tree's
// copy of them rather than the text: the tree's names lie close together in memory.
static void add_name(struct page_tree *tree, struct name *name)
{
	_cleanup_free_ char *clean = text_clean(name->bytes, name->length, TEXT_UNLIMITED);
	const struct page_frame frame = {
	    .name = string_table_intern(&tree->names, clean),
	    .file = string_table_intern(&tree->files, ""),
	    .module = string_table_intern(&tree->modules, ""),
	};

	name->frame = page_tree_frame(tree, &frame);
	if (strlen(clean) == name->length && memcmp(clean, name->bytes, name->length) == 0)
		name->bytes = tree->names.items[frame.name];
}

static uint32_t frame_of(struct folded *folded, const char *bytes, size_t length)
{
	struct name name = {.bytes = bytes, .length = length};
	const uint64_t hash = hash_bytes(bytes, length);
	const uint32_t id = hash_index_find(&folded->index, hash, name_equal, folded, &name);

	if (id != HASH_NONE)
		return folded->names[id].frame;
	add_name(&folded->page->tree, &name);
	hash_index_insert(&folded->index, hash, (uint32_t)folded->n_names);
	*array_push(folded->names, folded->n_names, folded->names_capacity) = name;
	return name.frame;
}

// Keeps the frames of the last stack with which this one begins, too: files are often sorted.
static void keep_common(struct folded *folded, const struct folded_line *line)
{
	const char *last = folded->last.stack;
	const size_t shorter =
	    line->length < folded->last.length ? line->length : folded->last.length;
	size_t n = 0, at = 0;

	while (n < folded->n_steps && folded->steps[n].end < shorter &&
	       memcmp(last + at, line->stack + at, folded->steps[n].end + 1 - at) == 0)
		at = folded->steps[n++].end + 1;
	folded->n_steps = n;
	folded->last = *line;
}

// Adds the stack's nodes to the tree. Returns the last one.
static uint32_t add_stack(struct folded *folded, const struct folded_line *line)
{
	struct page_tree *tree = &folded->page->tree;

	keep_common(folded, line);
	const struct step *last = folded->n_steps > 0 ? &folded->steps[folded->n_steps - 1] : NULL;
	uint32_t node = last ? last->node : PAGE_ROOT;
	size_t at = last ? last->end + 1 : 0;
	while (at < line->length && folded->n_steps < MAX_FRAMES) {
		const char *start = line->stack + at,
		           *semicolon = memchr(start, ';', line->length - at);
		const size_t length = semicolon ? (size_t)(semicolon - start) : line->length - at;
		node = page_tree_child(tree, node, frame_of(folded, start, length));
		*array_push(folded->steps, folded->n_steps, folded->steps_capacity) =
		    (struct step){.end = at + length, .node = node};
		at += length + 1;
	}
	return at < line->length ? page_add_cut(folded->page, node, MAX_FRAMES) : node;
}

// A count of one becomes one unit of the page, which it then shows exactly.
static void scale_up(struct page *page)
{
	for (size_t i = 0; i < page->tree.n_nodes; i++)
		page->tree.nodes[i].self_ns *= PAGE_UNIT_NS;
	page->end_ns *= PAGE_UNIT_NS;
	page->count_ns = PAGE_UNIT_NS;
}

uint64_t page_add_folded(struct page *page, const char *text, size_t size)
{
	struct folded folded = {.page = page};
	struct folded_line line;
	uint64_t bad = 0;

	page->count_ns = 1;
	for (const char *at = text, *end = text + size; next_line(&at, end, &line, &bad);)
		page_add_self(page, add_stack(&folded, &line), line.count, page->count_ns);
	if (page->end_ns <= MAX_EXACT)
		scale_up(page);
	page_add_self_runs(page);
	hash_index_deinit(&folded.index);
	free(folded.names);
	free(folded.steps);
	return bad;
}
