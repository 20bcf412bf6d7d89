// SPDX-License-Identifier: MIT
#include "python_cut.h"

#include <string.h>

#include "frame_names.h"
#include "profile.h"
#include "python.h"
#include "runtimes.h"
#include "unwind.h"

enum {
	// Of a stack that is deeper than is shown, so many of the outermost frames are: of few
	// frames, a part.
	MAX_OUTER = PYTHON_MAX_OUTER + 32,
	OUTER_SHARE = 16,
};

uint32_t python_more_calls(const struct python *python)
{
	const uint32_t function = frame_names_add(python->codes.names, "[more calls]", "", 0);

	return profile_intern_location(python->setup->profile, python->names_module,
	                               frame_names_address(function, 0));
}

bool python_cut(struct python *python, size_t n_max, struct unwound *stack)
{
	const size_t n = python->n_locations;
	const size_t n_outer = n_max / OUTER_SHARE < MAX_OUTER ? n_max / OUTER_SHARE : MAX_OUTER;

	if (n <= n_max)
		return false;
	python->n_locations = n_max;
	if (stack->end != STACK_COMPLETE || n_outer == 0) {
		stack->end = STACK_TOO_DEEP;
		return false;
	}
	const uint32_t mark = python_more_calls(python);
	uint32_t *from = &python->locations[n - n_outer], *outer;
	for (size_t i = 0; i < n_outer; i++)
		if (python->locations[n - n_outer + i] == mark)
			from = &python->locations[n - n_outer + i + 1]; // one mark is enough
	const size_t n_kept = (size_t)(&python->locations[n] - from);
	outer = &python->locations[n_max - n_outer];
	memmove(outer, from, n_kept * sizeof(*outer));
	outer[-1] = mark;
	python->n_locations = n_max - n_outer + n_kept;
	return true;
}
