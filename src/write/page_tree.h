// SPDX-License-Identifier: MIT
// page_tree: the stacks of a profile, or of two, as one tree of functions (ux: the page).
//
// Node 0 stands for all of them. A node's children differ in their frames; a frame is a function of
// a file of a module, whatever its line.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hash.h"
#include "string_table.h"

enum { PAGE_ROOT = 0 };

// The flags of a frame.
enum { PAGE_INLINED = 1, PAGE_KERNEL = 2, PAGE_END = 4 };

struct page_frame {
	uint32_t name, file, module; // strings of the tree's tables
	uint32_t line;               // the function's; 0: unknown
	uint32_t flags;              // PAGE_*
};

struct page_node {
	uint32_t parent, frame;
	uint32_t last_child;       // that was asked for last; PAGE_ROOT: none yet
	int64_t self_ns, total_ns; // total_ns after page_tree_order
};

struct page_tree {
	struct string_table names, files, modules;
	struct page_frame *frames; // that of the root is the first
	size_t n_frames, frames_capacity;
	struct page_node *nodes;
	size_t n_nodes, nodes_capacity;
	struct hash_index frame_index, node_index;
};

void page_tree_init(struct page_tree *tree);
void page_tree_deinit(struct page_tree *tree);

// The frame's number, new or known.
uint32_t page_tree_frame(struct page_tree *tree, const struct page_frame *frame);

// The child of the node with that frame, new or known.
uint32_t page_tree_child(struct page_tree *tree, uint32_t parent, uint32_t frame);

// Sums the times up, and returns the nodes in preorder, the heavier of two siblings first: an array
// of n_nodes, owned by the caller.
uint32_t *page_tree_order(struct page_tree *tree);
