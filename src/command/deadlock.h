// SPDX-License-Identifier: MIT
// deadlock: who waits for whom, and which of them can never go on.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEADLOCK_MAX_HOLDERS = 8, DEADLOCK_NONE = -1 };

struct deadlock_holder {
	int pid, tid; // tid 0: any thread of the process can let it go
};

struct deadlock_node {
	int pid, tid;
	struct deadlock_holder holders[DEADLOCK_MAX_HOLDERS]; // any of which could let it go on
	size_t n_holders;
	bool is_certain; // these are all, they were read, and were the same at two looks
	bool is_whole;   // all threads of its process are among the nodes

	// Set by deadlock_find.
	bool is_dead; // it can never go on
	long next;    // the node that it waits for; DEADLOCK_NONE: for none that is known
	long cycle;   // the first node of the cycle that it is in; DEADLOCK_NONE: it is in none
	long root;    // the last node of its chain; DEADLOCK_NONE: none, or the chain is a cycle
};

// Finds the nodes that can never go on: each waits for such nodes only. The nodes are sorted by
// pid, then tid, each once.
void deadlock_find(struct deadlock_node *nodes, size_t n);
