// SPDX-License-Identifier: MIT
#include "sample_kind.h"

#include <stdlib.h>

#include "memory.h"
#include "symbolize.h"

void sample_kinds_init(struct sample_kinds *kinds, const struct profile *profile,
                       const struct symbols *symbols)
{
	*kinds = (struct sample_kinds){
	    .profile = profile,
	    .symbols = symbols,
	    .name_classes = memory_alloc_zeroed(symbols->n_functions + 1, 1),
	};
	for (size_t i = 0; i < symbols->n_functions; i++)
		kinds->name_classes[i] =
		    wait_name_of(symbols->functions[i].name, symbols->functions[i].file);
}

void sample_kinds_deinit(struct sample_kinds *kinds)
{
	free(kinds->name_classes);
	*kinds = (struct sample_kinds){0};
}

enum wait_kind sample_kind(const struct sample_kinds *kinds, const struct sample *sample)
{
	const struct profile *profile = kinds->profile;
	const struct symbols *symbols = kinds->symbols;
	const struct stack *stack = &profile->stacks[sample->stack];
	const struct wait *wait = sample_wait(profile, sample);
	enum wait_name classes[WAIT_KIND_MAX_NAMES];
	const char *leaf = NULL;
	size_t n = 0;

	for (uint32_t i = stack->n_blamed; i < stack->n_frames && n < WAIT_KIND_MAX_NAMES; i++) {
		const uint32_t id = profile->location_ids[stack->first + i];
		const struct location_lines *lines = &symbols->locations[id];
		if (lines->count == 0)
			classes[n++] = WAIT_NAME_UNKNOWN;
		for (uint32_t j = 0; j < lines->count && n < WAIT_KIND_MAX_NAMES; j++) {
			const uint32_t function = symbols->lines[lines->first + j].function;
			leaf = i == stack->n_blamed && j + 1 == lines->count
			           ? symbols->functions[function].name
			           : leaf;
			classes[n++] = kinds->name_classes[function];
		}
	}
	return wait_kind_of(sample->state, wait, leaf, classes, n);
}
