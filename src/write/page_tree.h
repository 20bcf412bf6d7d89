// SPDX-License-Identifier: MIT
// page_tree: the stacks of one profile, or of two, as one tree of functions.
//
// Node 0 stands for all stacks. The children of a node differ in their frames; a frame is a
// function in a file of a module, whatever its line.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hash.h"
#include "string_table.h"

enum { PAGE_ROOT = 0 };

// The flags of a frame.
enum { PAGE_INLINED = 1, PAGE_KERNEL = 2, PAGE_END = 4, PAGE_OWN = 8 };

struct page_frame {
	uint32_t name, file, module; // strings of the tree's tables
	uint32_t line;               // the function's; 0: unknown
	uint32_t flags;              // PAGE_*
	uint32_t short_name;         // string of the names, set by page_tree_frame (short_name.h)
};

struct page_node {
	uint32_t parent, frame;
	uint32_t first_child;      // PAGE_ROOT: there is none
	uint32_t first_frame;      // that child's
	int64_t self_ns, total_ns; // page_tree_order sets total_ns
};

struct page_tree {
	struct string_table names, files, modules;
	struct page_frame *frames; // the root's frame is the first
	size_t n_frames, frames_capacity;
	struct page_node *nodes;
	size_t n_nodes, nodes_capacity;
	struct hash_index frame_index;
	struct hash_index node_index; // of all but first children: most nodes have no other
};

void page_tree_init(struct page_tree *tree);
void page_tree_deinit(struct page_tree *tree);

// Returns the frame's number; adds the frame if it is new.
uint32_t page_tree_frame(struct page_tree *tree, const struct page_frame *frame);

// Returns the child of the node with that frame; adds it if it is new.
uint32_t page_tree_child(struct page_tree *tree, uint32_t parent, uint32_t frame);

// Sums up the times. Returns the nodes in preorder, the heavier of two siblings first: an array of
// n_nodes, owned by the caller.
uint32_t *page_tree_order(struct page_tree *tree);
