// SPDX-License-Identifier: MIT
#include "page_tree.h"

#include <stdlib.h>

#include "memory.h"
#include "short_name.h"

void page_tree_init(struct page_tree *tree)
{
	*tree = (struct page_tree){0};
	const struct page_frame all = {
	    .name = string_table_intern(&tree->names, "all"),
	    .file = string_table_intern(&tree->files, ""),
	    .module = string_table_intern(&tree->modules, ""),
	};
	*array_push(tree->nodes, tree->n_nodes, tree->nodes_capacity) =
	    (struct page_node){.parent = PAGE_ROOT, .frame = page_tree_frame(tree, &all)};
}

void page_tree_deinit(struct page_tree *tree)
{
	string_table_deinit(&tree->names);
	string_table_deinit(&tree->files);
	string_table_deinit(&tree->modules);
	free(tree->frames);
	free(tree->nodes);
	hash_index_deinit(&tree->frame_index);
	hash_index_deinit(&tree->node_index);
	*tree = (struct page_tree){0};
}

static bool frame_equal(const void *context, uint32_t id, const void *key)
{
	const struct page_tree *tree = context;
	const struct page_frame *a = &tree->frames[id], *b = key;

	return a->name == b->name && a->file == b->file && a->module == b->module &&
	       a->flags == b->flags;
}

uint32_t page_tree_frame(struct page_tree *tree, const struct page_frame *frame)
{
	const uint64_t hash = hash_mix(hash_mix(frame->name, frame->file),
	                               (uint64_t)frame->module << 8 | frame->flags);
	uint32_t id = hash_index_find(&tree->frame_index, hash, frame_equal, tree, frame);

	if (id != HASH_NONE)
		return id;
	id = tree->n_frames;
	_cleanup_free_ char *short_text = short_name(tree->names.items[frame->name]);
	struct page_frame added = *frame;
	added.short_name = string_table_intern(&tree->names, short_text);
	*array_push(tree->frames, tree->n_frames, tree->frames_capacity) = added;
	hash_index_insert(&tree->frame_index, hash, id);
	return id;
}

static uint32_t add_node(struct page_tree *tree, const struct page_node *node)
{
	*array_push(tree->nodes, tree->n_nodes, tree->nodes_capacity) = *node;
	return (uint32_t)tree->n_nodes - 1;
}

uint32_t page_tree_child(struct page_tree *tree, uint32_t parent, uint32_t frame)
{
	const struct page_node node = {.parent = parent, .frame = frame};
	struct page_node *above = &tree->nodes[parent];

	if (above->first_child == PAGE_ROOT) {
		above->first_frame = frame;
		above->first_child = (uint32_t)tree->n_nodes;
		return add_node(tree, &node);
	}
	if (above->first_frame == frame)
		return above->first_child;
	return hash_intern(&tree->node_index, tree->nodes, tree->n_nodes, tree->nodes_capacity,
	                   node, offsetof(struct page_node, first_child));
}

// Adds children to their parents, last node first: a parent is older than its children.
static void sum_up(struct page_tree *tree)
{
	for (size_t i = 0; i < tree->n_nodes; i++)
		tree->nodes[i].total_ns = tree->nodes[i].self_ns;
	for (size_t i = tree->n_nodes; i-- > 1;)
		tree->nodes[tree->nodes[i].parent].total_ns += tree->nodes[i].total_ns;
}

// Sorts the heavier node first, and of equal ones the older, so that equal profiles make equal
// files.
static int compare(const void *a_pointer, const void *b_pointer, void *context)
{
	const struct page_node *nodes = context;
	const uint32_t a = *(const uint32_t *)a_pointer, b = *(const uint32_t *)b_pointer;

	if (nodes[a].total_ns != nodes[b].total_ns)
		return nodes[a].total_ns > nodes[b].total_ns ? -1 : 1;
	return (a > b) - (a < b);
}

// Sorts the children of each node: those of node i are children[first[i]] to children[first[i + 1]
// - 1].
static void sort_children(const struct page_tree *tree, uint32_t *first, uint32_t *children)
{
	const size_t n = tree->n_nodes;

	for (size_t i = 1; i < n; i++)
		first[tree->nodes[i].parent + 1]++;
	for (size_t i = 0; i < n; i++)
		first[i + 1] += first[i];
	for (size_t i = 1; i < n; i++)
		children[first[tree->nodes[i].parent]++] = i;
	for (size_t i = n; i > 0; i--)
		first[i] = first[i - 1];
	first[0] = 0;
	for (size_t i = 0; i < n; i++)
		if (first[i + 1] - first[i] > 1)
			qsort_r(children + first[i], first[i + 1] - first[i], sizeof(*children),
			        compare, tree->nodes);
}

uint32_t *page_tree_order(struct page_tree *tree)
{
	const size_t n = tree->n_nodes;
	_cleanup_free_ uint32_t *first = memory_alloc_zeroed(n + 1, sizeof(*first));
	_cleanup_free_ uint32_t *children = memory_alloc_zeroed(n, sizeof(*children));
	_cleanup_free_ uint32_t *todo = memory_alloc_zeroed(n, sizeof(*todo));
	uint32_t *order = memory_alloc_zeroed(n, sizeof(*order));
	size_t n_todo = 1, n_done = 0;

	sum_up(tree);
	sort_children(tree, first, children);
	todo[0] = PAGE_ROOT;
	while (n_todo > 0) {
		const uint32_t node = todo[--n_todo];
		order[n_done++] = node;
		for (uint32_t i = first[node + 1]; i-- > first[node];)
			todo[n_todo++] = children[i];
	}
	return order;
}
