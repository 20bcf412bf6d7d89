// SPDX-License-Identifier: MIT
#include "stack_root.h"

#include <stddef.h>

#include "address_space.h"
#include "maps.h"

enum {
	// The entry code may have aligned SP, and popped argc, before its first call.
	START_SLACK = 64,
	// What makers of stacks keep above the first frame: a few words, the stack's own
	// description.
	TOP_SLACK = 256,
	// What a stack is made of. Who keeps more than that above the first frame gives it whole
	// pages: Ruby's fibers have the interpreter's stack there (fiber_pool_stack_alloca, in
	// cont.c). Stacks that the kernel and the C library make are not made so.
	TOP_PAGE = 4096,
};

bool stack_root_is_entry(const struct address_space *space, uint64_t sp)
{
	const uint64_t start = space->start_stack;

	return start && sp + START_SLACK >= start && sp <= start + START_SLACK;
}

static bool holds(const struct mapping *mapping, uint64_t address)
{
	return address >= mapping->start && address < mapping->end;
}

// True if the mapping is the stack of a thread, the program's first or one of the C library's: what
// lies above the first frame there is known.
static bool is_own_stack(const struct address_space *space, const struct mapping *mapping,
                         uint64_t tls)
{
	return holds(mapping, space->start_stack) || holds(mapping, tls);
}

bool stack_root_is_top(struct address_space *space, uint64_t sp, uint64_t tls)
{
	// An SP at the very end of a mapping belongs to it.
	const struct mapping *mapping = maps_find(&space->maps, sp - 1);

	if (stack_root_is_entry(space, sp))
		return true;
	space->stale |= mapping == NULL;
	return mapping && (mapping->end - sp <= TOP_SLACK ||
	                   (sp % TOP_PAGE == 0 && !is_own_stack(space, mapping, tls)));
}

bool stack_root_is_passed(const struct address_space *space, uint64_t sp, uint64_t pc)
{
	const uint64_t start = space->start_stack;

	// Asked at each frame: one comparison nearly always decides.
	return sp - start - 1 < START_SLACK && start && !address_space_is_code(space, pc);
}
