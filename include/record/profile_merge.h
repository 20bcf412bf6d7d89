// SPDX-License-Identifier: MIT
// profile_merge: profiles of several runs in one, weighted.
#pragma once

#include "module.h"
#include "profile.h"
#include "symbolize.h"

struct merged {
	struct profile profile; // its samples' sums may be negative: those of count as 2^64 less
	struct modules modules;
	struct symbols symbols;
	size_t locations_capacity; // of symbols.locations
};

// A zeroed struct merged is ready.
void merged_deinit(struct merged *merged);

// Adds the profile's samples, their sums multiplied by `weight`. Threads stay apart from those that
// were added before.
void merged_add(struct merged *merged, const struct profile *profile, const struct modules *modules,
                const struct symbols *symbols, double weight);
