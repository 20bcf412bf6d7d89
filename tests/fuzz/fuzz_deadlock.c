// SPDX-License-Identifier: MIT
// Who waits for whom, as a target's words can claim: against the definition, which takes longer.
#include "deadlock.h"
#include "fuzz.h"

enum { MAX_NODES = 24, N_PIDS = 4 };

static bool is_dead_thread(const struct deadlock_node *nodes, size_t n, const bool *dead,
                           const struct deadlock_holder *holder)
{
	for (size_t i = 0; i < n; i++)
		if (nodes[i].pid == holder->pid && nodes[i].tid == holder->tid)
			return dead[i];
	return false;
}

static bool is_dead_process(const struct deadlock_node *nodes, size_t n, const bool *dead, int pid)
{
	bool has_any = false;

	for (size_t i = 0; i < n; i++) {
		if (nodes[i].pid != pid)
			continue;
		has_any = true;
		if (!dead[i] || !nodes[i].is_whole)
			return false;
	}
	return has_any;
}

static void find_slowly(const struct deadlock_node *nodes, size_t n, bool *dead)
{
	bool changed = true;

	for (size_t i = 0; i < n; i++)
		dead[i] = nodes[i].is_certain && nodes[i].n_holders > 0;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < nodes[i].n_holders && dead[i]; j++) {
				const struct deadlock_holder *holder = &nodes[i].holders[j];
				dead[i] = holder->tid
				              ? is_dead_thread(nodes, n, dead, holder)
				              : is_dead_process(nodes, n, dead, holder->pid);
				changed |= !dead[i];
			}
	}
}

// The end of the chain, at which the walk of as many steps as there are nodes stands.
static void check_root(const struct deadlock_node *nodes, size_t n, size_t from)
{
	long at = (long)from;

	for (size_t i = 0; i <= n && nodes[at].next != DEADLOCK_NONE; i++)
		at = nodes[at].next;
	const bool has_end = nodes[at].next == DEADLOCK_NONE && at != (long)from;
	expect(nodes[from].root == (has_end ? at : DEADLOCK_NONE));
	expect(nodes[at].next == DEADLOCK_NONE || nodes[at].cycle != DEADLOCK_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct deadlock_node nodes[MAX_NODES] = {0};
	struct input input = {data, size};
	bool dead[MAX_NODES];
	const size_t n = input_u8(&input) % (MAX_NODES + 1);

	for (size_t i = 0; i < n; i++) {
		const uint8_t flags = input_u8(&input);
		nodes[i].pid = (int)(1 + i * N_PIDS / MAX_NODES);
		nodes[i].tid = (int)i + 1;
		nodes[i].is_certain = (flags & 7) != 0;
		nodes[i].is_whole = (flags & 0x38) != 0;
		nodes[i].n_holders = (flags >> 6) % (DEADLOCK_MAX_HOLDERS + 1);
		for (size_t j = 0; j < nodes[i].n_holders; j++) {
			const uint8_t holder = input_u8(&input);
			nodes[i].holders[j].tid = holder % 5 ? holder % (MAX_NODES + 2) : 0;
			nodes[i].holders[j].pid =
			    holder % 5 ? 1 + (nodes[i].holders[j].tid - 1) * N_PIDS / MAX_NODES
			               : 1 + holder / 5 % (N_PIDS + 1);
		}
	}
	deadlock_find(nodes, n);
	find_slowly(nodes, n, dead);
	for (size_t i = 0; i < n; i++) {
		expect(nodes[i].is_dead == dead[i]);
		check_root(nodes, n, i);
	}
	return 0;
}
