// SPDX-License-Identifier: MIT
#include "deadlock.h"

#include <stdlib.h>

#include "memory.h"

// The first node of the process whose tid is not below; n: there is none.
static size_t find_from(const struct deadlock_node *nodes, size_t n, int pid, int tid)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct deadlock_node *node = &nodes[middle];
		if (node->pid < pid || (node->pid == pid && node->tid < tid))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static long find(const struct deadlock_node *nodes, size_t n, int pid, int tid)
{
	const size_t i = find_from(nodes, n, pid, tid);

	return i < n && nodes[i].pid == pid && nodes[i].tid == tid ? (long)i : DEADLOCK_NONE;
}

// Who waits for what: for a thread (its node), or for any of a process's threads (n + the first of
// their nodes).
struct waiting {
	size_t for_what, node;
};

struct graph {
	struct deadlock_node *nodes; // borrowed
	size_t n;
	struct waiting *waiting; // sorted by what is waited for
	size_t n_waiting, capacity;
	size_t *todo; // nodes that can go on, whose waiters have not heard of it yet
	size_t n_todo;
	bool *told; // each thing that was waited for, and is not any more
};

static void strike_off(struct graph *graph, size_t node)
{
	if (!graph->nodes[node].is_dead)
		return;
	graph->nodes[node].is_dead = false;
	graph->todo[graph->n_todo++] = node;
}

static void add_waiting(struct graph *graph, size_t node, const struct deadlock_holder *holder)
{
	const struct deadlock_node *nodes = graph->nodes;
	const size_t at = find_from(nodes, graph->n, holder->pid, holder->tid);

	// One that is not known may do anything.
	if (at == graph->n || nodes[at].pid != holder->pid ||
	    (holder->tid != 0 && nodes[at].tid != holder->tid)) {
		strike_off(graph, node);
		return;
	}
	*array_push(graph->waiting, graph->n_waiting, graph->capacity) =
	    (struct waiting){holder->tid != 0 ? at : graph->n + at, node};
}

static int compare_waiting(const void *a_pointer, const void *b_pointer)
{
	const struct waiting *a = a_pointer, *b = b_pointer;

	return (a->for_what > b->for_what) - (a->for_what < b->for_what);
}

// Strikes off all who wait for that.
static void tell(struct graph *graph, size_t for_what)
{
	size_t low = 0, high = graph->n_waiting;

	if (graph->told[for_what])
		return;
	graph->told[for_what] = true;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (graph->waiting[middle].for_what < for_what)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < graph->n_waiting && graph->waiting[low].for_what == for_what; low++)
		strike_off(graph, graph->waiting[low].node);
}

// Its process can let go what any of its threads can.
static void tell_of(struct graph *graph, size_t node)
{
	const size_t first = find_from(graph->nodes, graph->n, graph->nodes[node].pid, 0);

	if (!graph->nodes[node].is_dead)
		tell(graph, node);
	tell(graph, graph->n + first);
}

// All could be; then those are struck off that somebody can let go on, and those who wait for them.
static void find_dead(struct deadlock_node *nodes, size_t n)
{
	_cleanup_free_ size_t *todo = memory_alloc_zeroed(n + 1, sizeof(*todo));
	_cleanup_free_ bool *told = memory_alloc_zeroed(2 * n + 1, sizeof(*told));
	struct graph graph = {.nodes = nodes, .n = n, .todo = todo, .told = told};

	for (size_t i = 0; i < n; i++)
		nodes[i].is_dead = nodes[i].is_certain && nodes[i].n_holders > 0;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < nodes[i].n_holders; j++)
			add_waiting(&graph, i, &nodes[i].holders[j]);
	if (graph.n_waiting > 0)
		qsort(graph.waiting, graph.n_waiting, sizeof(*graph.waiting), compare_waiting);
	for (size_t i = 0; i < n; i++)
		if (!nodes[i].is_dead || !nodes[i].is_whole)
			tell_of(&graph, i);
	while (graph.n_todo > 0)
		tell_of(&graph, graph.todo[--graph.n_todo]);
	free(graph.waiting);
}

static long next_of(const struct deadlock_node *nodes, size_t n, const struct deadlock_node *node)
{
	if (node->n_holders == 0)
		return DEADLOCK_NONE;
	const struct deadlock_holder *holder = &node->holders[0];
	if (holder->tid != 0)
		return find(nodes, n, holder->pid, holder->tid);
	const size_t first = find_from(nodes, n, holder->pid, 0);
	return first < n && nodes[first].pid == holder->pid ? (long)first : DEADLOCK_NONE;
}

// Marks the cycle that the chain from the node on leads to. `visited`: the walk that came by last.
static void mark_cycle(struct deadlock_node *nodes, size_t from, long *visited)
{
	long i = (long)from;

	while (i != DEADLOCK_NONE && visited[i] == 0) {
		visited[i] = (long)from + 1;
		i = nodes[i].next;
	}
	if (i == DEADLOCK_NONE || visited[i] != (long)from + 1)
		return; // it ends, or joins one that was walked before
	const long first = i;
	do {
		nodes[i].cycle = first;
		i = nodes[i].next;
	} while (i != first);
}

// The ends of the chains; one without an end has none. What was found for a node holds for all
// that lead to it, so that each is come by twice at most.
static void find_roots(struct deadlock_node *nodes, size_t n)
{
	_cleanup_free_ bool *done = memory_alloc_zeroed(n + 1, sizeof(*done));

	for (size_t i = 0; i < n; i++) {
		size_t at = i;
		while (!done[at] && nodes[at].cycle == DEADLOCK_NONE &&
		       nodes[at].next != DEADLOCK_NONE)
			at = (size_t)nodes[at].next;
		const bool is_end = nodes[at].next == DEADLOCK_NONE;
		const long root = is_end ? (long)at : done[at] ? nodes[at].root : DEADLOCK_NONE;
		for (size_t j = i; j != at; j = (size_t)nodes[j].next) {
			nodes[j].root = root;
			done[j] = true;
		}
		if (!done[at])
			nodes[at].root = DEADLOCK_NONE;
		done[at] = true;
	}
}

void deadlock_find(struct deadlock_node *nodes, size_t n)
{
	_cleanup_free_ long *visited = memory_alloc_zeroed(n + 1, sizeof(*visited));

	find_dead(nodes, n);
	for (size_t i = 0; i < n; i++) {
		nodes[i].next = next_of(nodes, n, &nodes[i]);
		nodes[i].cycle = DEADLOCK_NONE;
	}
	for (size_t i = 0; i < n; i++)
		mark_cycle(nodes, i, visited);
	find_roots(nodes, n);
}
