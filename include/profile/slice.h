// SPDX-License-Identifier: MIT
// slice: adds up, from spans (profile.h), what was sampled in a part of the time.
//
// A tick belongs to the slice that its time lies in, with all the wall time that it stands for, so
// that slices which follow each other add up exactly to the whole. The ticks of a span are all
// alike, and are taken to be spread evenly over it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "profile.h"

struct slice {
	struct span_follower follower; // first: it adds what it is told
	int64_t from_ns, to_ns;        // CLOCK_MONOTONIC: from <= t < to
	struct sample *sums;           // one for each of the profile's samples, by id
	size_t n_sums, sums_capacity;
	struct sample *samples; // those that are not empty, for slice_view
	// The kernel's figures at the slice's begin and end, and the last ones, by thread.
	struct figures_range *figures;
	struct thread_figures *last_figures;
	size_t n_figures, figures_capacity, last_capacity;
};

// Begins an empty slice. `to_ns` may be INT64_MAX, `from_ns` INT64_MIN.
void slice_init(struct slice *slice, int64_t from_ns, int64_t to_ns);
void slice_deinit(struct slice *slice);

// Adds the part of the span that lies in the slice.
void slice_add(struct slice *slice, const struct profile *profile, const struct span *span);

// Returns how many of the span's ticks lie before `ns`.
uint64_t span_ticks_before(const struct span *span, int64_t ns);

// Returns a view of the profile with only the slice's samples, to be written: everything else is
// borrowed from the profile, and from the slice until it changes. Not to be freed.
struct profile slice_view(struct slice *slice, const struct profile *profile);
