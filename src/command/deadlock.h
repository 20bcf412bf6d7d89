// SPDX-License-Identifier: MIT
// deadlock: finds out which threads can never go on, by who waits for whom.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { DEADLOCK_MAX_HOLDERS = 8, DEADLOCK_NONE = -1 };

struct deadlock_holder {
	int pid, tid; // tid 0: any thread of the process can release what it holds
};

struct deadlock_node {
	int pid, tid;
	struct deadlock_holder holders[DEADLOCK_MAX_HOLDERS]; // each could let this thread go on
	size_t n_holders;
	bool is_certain; // there are no other holders, and two looks saw the same
	bool is_whole;   // all threads of its process are among the nodes

	// Set by deadlock_find.
	bool is_dead; // can never go on
	long next;    // the node that it waits for; DEADLOCK_NONE: not known
	long cycle;   // the first node of the cycle that it is part of; DEADLOCK_NONE: of none
	long root;    // the last node of its chain; DEADLOCK_NONE: none, or the chain is a cycle
};

// Finds the nodes that can never go on, as each waits only for nodes that cannot either. The nodes
// must be sorted by pid, then tid, without duplicates.
void deadlock_find(struct deadlock_node *nodes, size_t n);
