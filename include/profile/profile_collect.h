// SPDX-License-Identifier: MIT
// profile_collect: frees what is not used any more, in a profile that is sampled into without end.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct profile;

// True if it has grown so much since the last time that each sample's share of the work is small.
bool profile_collect_is_due(const struct profile *profile);

// Frees the samples i < profile->n_samples for which kept[i] is false, the stacks that are then in
// no sample, the threads that have ended and are in none, and the names of processes without a
// thread. Always keeps the last sample of each living thread, which the sampler may count again by
// its id, and the first `n_stacks` stacks. Ids of samples and threads stay the same; those of
// stacks do not.
void profile_collect(struct profile *profile, bool *kept, size_t n_stacks);
