// SPDX-License-Identifier: MIT
// top_waits: adds up what threads wait for in a window, for top_model: one row for each thing.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "top_model.h"

static inline bool top_is_selected(const struct top_input *input, const struct span *span)
{
	return span->count > 0 && (!input->selected || input->selected[span->sample]);
}

static inline void top_add_share(struct top_share *share, const struct top_model *model, size_t id,
                                 uint64_t count)
{
	share->count += count;
	share->idle += model->no_work[id] ? count : 0;
	share->kinds[model->kinds[id]] += count;
}

// True if the sample has a share in the functions, the tree and the waits.
static inline bool top_counts(const struct top_model *model, const struct sample *sums, size_t id)
{
	return sums[id].count > 0 && !(model->hides_idle && model->no_work[id]);
}

// Sets model->waits from the window's sums, of which there is one for each sample.
void top_find_waits(struct top_model *model, const struct sample *sums, size_t n);
