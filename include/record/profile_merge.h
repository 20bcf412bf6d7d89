// SPDX-License-Identifier: MIT
// profile_merge: adds the profiles of several runs to one, each with a weight.
#pragma once

#include "module.h"
#include "profile.h"
#include "symbolize.h"

// The label of samples that are taken away, as go tool pprof -diff_base gives it: shares are then
// of what these add up to.
#define MERGED_BASE "pprof::base\ttrue\n"

struct merged {
	struct profile profile; // its sums may be negative; a count of -n is 2^64 - n then
	struct modules modules;
	struct symbols symbols;
	int64_t end_ns; // after the first sight of each thread in `profile`
};

// Frees what *merged owns. A zeroed struct merged is ready for use.
void merged_deinit(struct merged *merged);

// Adds the profile's samples, with their sums multiplied by `weight`. If that
// is negative they get the label MERGED_BASE. Its threads are not added up
// with those of earlier profiles.
void merged_add(struct merged *merged, const struct profile *profile, const struct modules *modules,
                const struct symbols *symbols, double weight);
