// SPDX-License-Identifier: MIT
#include "agent_sums.h"

#include "run_stats.h"
#include "window_files.h"

void agent_sums_add(struct agent_sums *sums, const struct run_stats *stats,
                    const struct window_files *files)
{
	sums->ticks += stats->ticks;
	sums->missed_ticks += stats->missed_ticks;
	sums->samples += stats->samples;
	sums->unmended_calls += stats->calls.left;
	sums->lost_windows += files->n_lost;
	sums->lost_samples += files->n_lost_samples;
}
