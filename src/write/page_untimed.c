// SPDX-License-Identifier: MIT
// Sums without time in a page: each place in the tree has one run for all of its own sum, one after
// the other, so that the page is not larger than its tree.
#include "memory.h"
#include "page.h"

void page_add_self(struct page *page, uint32_t node, int64_t count, int64_t scale_ns)
{
	const int64_t room_ns = PAGE_MAX_SUM_NS - page->end_ns;
	const int64_t ns = count > room_ns / scale_ns ? room_ns : count * scale_ns;

	page->tree.nodes[node].self_ns += ns;
	page->end_ns += ns;
}

void page_add_self_runs(struct page *page)
{
	int64_t at_ns = 0;

	for (size_t i = 0; i < page->tree.n_nodes; i++) {
		const int64_t ns = page->tree.nodes[i].self_ns;
		if (ns == 0)
			continue;
		*array_push(page->runs, page->n_runs, page->runs_capacity) =
		    (struct page_run){.start_ns = at_ns, .end_ns = at_ns + ns, .node = (uint32_t)i};
		at_ns += ns;
	}
	if (page->n_runs > 0)
		*array_push(page->threads, page->n_threads, page->threads_capacity) =
		    (struct page_thread){
		        .name = string_table_intern(&page->thread_names, "samples"),
		        .death_ns = -1,
		        .n_runs = page->n_runs,
		        .weights.factor = {1, 1, 1},
		    };
}

uint32_t page_add_cut(struct page *page, uint32_t node, size_t max_frames)
{
	struct page_tree *tree = &page->tree;
	_cleanup_free_ char *name = memory_printf("[truncated: more than %zu frames]", max_frames);
	const struct page_frame frame = {
	    .name = string_table_intern(&tree->names, name),
	    .file = string_table_intern(&tree->files, ""),
	    .module = string_table_intern(&tree->modules, ""),
	    .flags = PAGE_END,
	};

	return page_tree_child(tree, node, page_tree_frame(tree, &frame));
}
