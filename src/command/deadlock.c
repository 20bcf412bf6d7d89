#include "deadlock.h"

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

// True if nobody can do it: neither that thread nor, where any of the process's can, one of those.
static bool is_dead_holder(const struct deadlock_node *nodes, size_t n,
                           const struct deadlock_holder *holder)
{
	if (holder->tid != 0) {
		const long i = find(nodes, n, holder->pid, holder->tid);
		return i != DEADLOCK_NONE && nodes[i].is_dead;
	}
	const size_t first = find_from(nodes, n, holder->pid, 0);
	if (first == n || nodes[first].pid != holder->pid)
		return false;
	for (size_t i = first; i < n && nodes[i].pid == holder->pid; i++)
		if (!nodes[i].is_whole || !nodes[i].is_dead)
			return false;
	return true;
}

static bool stays_dead(const struct deadlock_node *nodes, size_t n,
                       const struct deadlock_node *node)
{
	for (size_t i = 0; i < node->n_holders; i++)
		if (!is_dead_holder(nodes, n, &node->holders[i]))
			return false;
	return true;
}

// All could be; then those are struck off that somebody can let go on, until nothing changes.
static void find_dead(struct deadlock_node *nodes, size_t n)
{
	bool changed = true;

	for (size_t i = 0; i < n; i++)
		nodes[i].is_dead = nodes[i].is_certain && nodes[i].n_holders > 0;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < n; i++) {
			if (!nodes[i].is_dead || stays_dead(nodes, n, &nodes[i]))
				continue;
			nodes[i].is_dead = false;
			changed = true;
		}
	}
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

// The end of the chain; one without an end has none.
static long root_of(const struct deadlock_node *nodes, size_t n, size_t from)
{
	long i = (long)from;

	for (size_t steps = 0; steps <= n; steps++) {
		if (nodes[i].next == DEADLOCK_NONE)
			return i == (long)from ? DEADLOCK_NONE : i;
		i = nodes[i].next;
	}
	return DEADLOCK_NONE;
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
	for (size_t i = 0; i < n; i++)
		nodes[i].root = root_of(nodes, n, i);
}
