// SPDX-License-Identifier: MIT
#include "other_stacks.h"

#include "memory.h"

enum {
	GROWTH = 4,
	// A place is dropped after so many walks without a use; one that is used often, later.
	FIRST_USES = 4,
	USES_OF_A_READ = 8,
	MAX_USES = 64,
};

static struct other_stack *least_used(struct other_stacks *stacks)
{
	struct other_stack *least = &stacks->items[0];

	for (size_t i = 1; i < stacks->n; i++)
		if (stacks->items[i].uses < least->uses)
			least = &stacks->items[i];
	return least;
}

// Makes the place larger, if the address lies just outside it.
static bool extend(struct other_stack *stack, uint64_t address)
{
	const uint64_t below = stack->start - address;
	const uint64_t above = address - stack->start;

	if (below <= OTHER_STACKS_NEAR_BYTES) {
		if (below > OTHER_STACKS_MAX_BYTES - stack->bytes)
			return false;
		stack->start = address;
		stack->bytes += (uint32_t)below;
		return true;
	}
	if (above >= (uint64_t)stack->bytes + OTHER_STACKS_NEAR_BYTES ||
	    stack->bytes > OTHER_STACKS_MAX_BYTES / GROWTH)
		return false;
	stack->bytes *= GROWTH;
	return true;
}

void other_stacks_learn(struct other_stacks **ret, uint64_t address)
{
	struct other_stacks *stacks = *ret;

	if (!stacks)
		stacks = *ret = memory_alloc_zeroed(1, sizeof(*stacks));
	for (size_t i = 0; i < stacks->n; i++)
		if (address - stacks->items[i].start < stacks->items[i].bytes)
			return; // it cannot be read
	stacks->n_learned++;
	for (size_t i = 0; i < stacks->n; i++)
		if (extend(&stacks->items[i], address))
			return;
	const bool is_full = stacks->n == OTHER_STACKS_MAX;
	struct other_stack *stack = is_full ? least_used(stacks) : &stacks->items[stacks->n];
	*stack = (struct other_stack){
	    .start = address,
	    .bytes = OTHER_STACKS_FIRST_BYTES,
	    .uses = FIRST_USES,
	};
	stacks->n += !is_full;
}

void other_stacks_note_walk(struct other_stacks *stacks)
{
	size_t n_kept = 0;

	for (size_t i = 0; i < stacks->n; i++) {
		struct other_stack *stack = &stacks->items[i];
		const unsigned int uses = stack->uses + (stack->was_read ? USES_OF_A_READ : -1);
		stack->uses = (uint8_t)(uses < MAX_USES ? uses : MAX_USES);
		stack->was_read = false;
		if (stack->uses > 0)
			stacks->items[n_kept++] = *stack;
	}
	stacks->n = n_kept;
}