// SPDX-License-Identifier: MIT
// share_doubts: says where the shares of a profile may be wrong.
#pragma once

#include <stdint.h>

struct profile;
struct run_stats;

// Returns for how long one tick in ten was late, or for longer; 0 if the sampler had real-time
// priority, so that its ticks come in time.
int64_t share_doubts_late_ns(const struct run_stats *stats);

// Returns what is uncertain, in a line; NULL: nothing is. The caller frees. That is so if
// - ticks found threads running much more or less often than the kernel did, and not by chance:
//   times are weighed (weights.h), so that totals are right all the same;
// - threads with too few samples to be weighed have much of the time, and ticks began late: these
//   may be seen in the wrong places, and nothing corrects that.
// While the profile still grows (its duration is 0), what the kernel has counted since a thread's
// last figures is not held against it.
char *share_doubts_text(const struct profile *profile);
