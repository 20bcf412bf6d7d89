// SPDX-License-Identifier: MIT
#include "sample_work.h"

#include <stdint.h>
#include <stdlib.h>

#include "memory.h"
#include "module.h"
#include "own_code.h"
#include "profile.h"
#include "stack_marks.h"
#include "symbolize.h"

enum { NOT_OWN = 1, OWN = 2 };

struct sample_work {
	const struct profile *profile; // borrowed, as the next two
	const struct modules *modules;
	const struct symbols *symbols;
	struct stack_marks marks;
	uint8_t *own; // of each location; 0: not looked at
};

struct sample_work *sample_work_create(const struct profile *profile, const struct modules *modules,
                                       const struct symbols *symbols)
{
	struct sample_work *work = memory_alloc_zeroed(1, sizeof(*work));

	*work = (struct sample_work){
	    .profile = profile,
	    .modules = modules,
	    .symbols = symbols,
	    .own = memory_alloc_zeroed(profile->n_locations + 1, 1),
	};
	stack_marks_init(&work->marks, profile, symbols);
	return work;
}

void sample_work_destroy(struct sample_work *work)
{
	if (!work)
		return;
	stack_marks_deinit(&work->marks);
	free(work->own);
	free(work);
}

static bool is_own(struct sample_work *work, uint32_t id)
{
	const struct location_lines *lines = &work->symbols->locations[id];
	const struct module *module = work->modules->items[work->profile->locations[id].module];

	if (work->own[id])
		return work->own[id] == OWN;
	work->own[id] = NOT_OWN;
	for (uint32_t i = 0; i < lines->count; i++) {
		const uint32_t function = work->symbols->lines[lines->first + i].function;
		if (own_code_function(module, &work->symbols->functions[function]))
			work->own[id] = OWN;
	}
	return work->own[id] == OWN;
}

// True if a function of the program's own is on the stack.
static bool has_own(struct sample_work *work, const struct stack *stack)
{
	for (uint32_t i = stack->n_blamed; i < stack->n_frames; i++)
		if (is_own(work, work->profile->location_ids[stack->first + i]))
			return true;
	return false;
}

bool sample_has_no_work(struct sample_work *work, const struct sample *sample, enum wait_kind kind)
{
	const struct stack *stack = &work->profile->stacks[sample->stack];
	const struct wait *wait = sample_wait(work->profile, sample);

	if (wait && wait->reason[0] && kind == WAIT_KIND_SOCKET && !has_own(work, stack))
		return true;
	if (wait && wait->reason[0] && kind == WAIT_KIND_CONDITION &&
	    (stack_marks_has(&work->marks, stack, MARK_ANSWER) ||
	     stack_marks_has(&work->marks, stack, MARK_LOOKUP)))
		return false;
	return wait_kind_has_no_work(kind, wait);
}
