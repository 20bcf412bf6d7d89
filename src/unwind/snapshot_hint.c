// SPDX-License-Identifier: MIT
#include "snapshot_hint.h"

#include <stdlib.h>

#include "arch.h"
#include "order.h"
#include "other_stacks.h"
#include "snapshot.h"

enum {
	MAX_BASE_CHANGES = 4, // a main thread's stack begins elsewhere after each exec
	// A stack that is larger than the part of it which holds the most frames that are shown, by
	// this factor, has more: its other frames would have to be as much larger than those.
	HUGE_FACTOR = 4,
	// So many copies of a huge stack are small before one is made as large as any again. Of the
	// first ones, each whose number is a power of two is followed by such a one.
	MAX_HUGE = 256,
	MAX_PARTIAL = 24, // walks in a row, after which no other look is worth it
};

void snapshot_hint_deinit(struct snapshot_hint *hint)
{
	free(hint->others);
	for (size_t i = 0; i < LANGUAGES_MAX; i++)
		free(hint->of_thread[i]);
	*hint = (struct snapshot_hint){0};
}

void snapshot_hint_stopped(struct snapshot_hint *hint, const struct snapshot *snapshot)
{
	hint->stopped_sp = snapshot->registers.value[ARCH_NATIVE->sp];
	hint->stopped_bytes = snapshot->regions[0].size;
}

void snapshot_hint_grow(struct snapshot_hint *hint, const struct snapshot *snapshot)
{
	size_t wanted = 0;

	for (size_t i = 0; i < snapshot->n_regions; i++)
		if (snapshot->regions[i].other == 0)
			wanted = order_max(wanted, 2 * snapshot->regions[i].size);
	wanted = wanted < SNAPSHOT_MAX_STACK_BYTES ? wanted : SNAPSHOT_MAX_STACK_BYTES;
	if (snapshot->is_huge) {
		hint->huge_bytes = 0;
		hint->n_grown++;
		return;
	}
	hint->n_grown += wanted > hint->guess_bytes || wanted > hint->limit_bytes;
	hint->guess_bytes = order_max(hint->guess_bytes, wanted);
	hint->limit_bytes = order_max(hint->limit_bytes, wanted);
}

// Shrinks slowly: a stack with larger frames may come again.
static size_t shrink(size_t bytes, size_t initial_bytes, size_t wanted)
{
	bytes = bytes ? bytes : initial_bytes;
	return bytes > wanted ? order_max(bytes - bytes / 8, wanted) : bytes;
}

// Returns how many bytes hold the stack up to that SP; 0: it is on another stack.
static size_t bytes_up_to(const struct snapshot *snapshot, uint64_t sp)
{
	const struct snapshot_region *region = &snapshot->regions[0];

	return sp > region->start && sp - region->start <= region->size ? sp - region->start : 0;
}

// A little more than the last time was enough: frames differ in size.
static size_t with_room(size_t bytes)
{
	return bytes / 4 * 5;
}

bool snapshot_is_huge(const struct snapshot *snapshot, uint64_t sp, size_t walks)
{
	const size_t bytes = bytes_up_to(snapshot, sp);

	return bytes != 0 && snapshot->deep_bytes / HUGE_FACTOR > bytes * walks;
}

void snapshot_hint_deep(struct snapshot_hint *hint, const struct snapshot *snapshot, uint64_t sp,
                        uint64_t kept_sp)
{
	const size_t bytes = bytes_up_to(snapshot, sp), kept = bytes_up_to(snapshot, kept_sp);

	if (bytes == 0 || kept == 0)
		return; // on another stack
	hint->deep_sp = kept_sp;
	if (snapshot->is_huge) {
		const unsigned int n = ++hint->n_huge;
		if (n % MAX_HUGE == 0 || (n & (n - 1)) == 0) // ever fewer of the first
			hint->huge_bytes = 0;
		return;
	}
	if (kept < bytes) {
		hint->huge_bytes = HUGE_FACTOR * bytes;
		hint->huge_limit_bytes = order_max(hint->huge_limit_bytes, with_room(kept));
	}
	hint->guess_bytes =
	    shrink(hint->guess_bytes, SNAPSHOT_UNKNOWN_STACK_BYTES, with_room(bytes));
	hint->limit_bytes = shrink(hint->limit_bytes, SNAPSHOT_KNOWN_STACK_BYTES, with_room(bytes));
}

void snapshot_hint_whole(struct snapshot_hint *hint, const struct snapshot *snapshot,
                         uint64_t outer_sp, uint64_t base)
{
	const uint64_t sp = snapshot->registers.value[ARCH_NATIVE->sp];

	if (base < sp || base - sp > snapshot->stack_bytes || outer_sp < sp || outer_sp > base)
		return; // of a stack that a signal interrupted
	// The lowest counts, since a deep stack may have been seen less often than a shallow one.
	if (hint->outer_base != base || outer_sp < hint->outer_sp)
		hint->outer_sp = outer_sp;
	hint->outer_base = base;
}

void snapshot_hint_ended(struct snapshot_hint *hint, const struct snapshot *snapshot)
{
	hint->is_searched |= snapshot->is_unsearched;
}

void snapshot_hint_base(struct snapshot_hint *hint, const struct snapshot *snapshot, uint64_t base)
{
	const uint64_t sp = snapshot->registers.value[ARCH_NATIVE->sp];
	const struct snapshot_region *own = &snapshot->regions[0];

	if (base <= sp || base - own->start > own->size)
		return; // none, or that of a stack which a signal interrupted
	hint->n_changes += hint->last_base != base && hint->n_changes < MAX_BASE_CHANGES;
	hint->last_base = base;
	hint->base = hint->n_changes < MAX_BASE_CHANGES ? base : 0;
	if (base - sp > hint->depth)
		hint->depth = base - sp;
}

bool snapshot_goes_on_at(const struct snapshot *snapshot, uint64_t missing)
{
	const uint64_t sp = snapshot->registers.value[ARCH_NATIVE->sp];

	if (missing == 0 || missing - sp < snapshot->stack_bytes)
		return true;
	for (size_t i = 0; i < snapshot->n_regions; i++) {
		const struct snapshot_region *region = &snapshot->regions[i];
		if (region->other == 0 &&
		    missing - region->start - region->size < SNAPSHOT_UNKNOWN_STACK_BYTES)
			return true;
	}
	return false;
}

void snapshot_hint_others(struct snapshot_hint *hint, const struct snapshot *snapshot,
                          uint64_t missing, bool is_whole)
{
	uint64_t byte;

	hint->n_partial = is_whole ? 0 : hint->n_partial + 1;
	if (hint->others)
		other_stacks_note_walk(hint->others);
	if (!is_whole && missing != 0 && !snapshot_read(snapshot, missing, 1, &byte))
		other_stacks_learn(&hint->others, missing & ~(uint64_t)7);
}

bool snapshot_hint_knows_more(const struct snapshot_hint *hint, const struct snapshot *snapshot)
{
	return hint->n_grown != snapshot->n_grown ||
	       (hint->others && hint->others->n_learned != snapshot->n_learned);
}

bool snapshot_hint_may_look_again(const struct snapshot_hint *hint)
{
	return hint->n_partial < MAX_PARTIAL;
}
