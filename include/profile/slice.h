// SPDX-License-Identifier: MIT
// slice: what was sampled in a part of the time, added up from spans (profile.h).
//
// A tick belongs to the slice that its time lies in, with all of the wall time that it stands for,
// so that slices which follow each other add up to the whole exactly. Within a span, whose ticks
// are all alike, they are taken to be spread evenly.
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
};

// `to_ns` may be INT64_MAX, `from_ns` INT64_MIN.
void slice_init(struct slice *slice, int64_t from_ns, int64_t to_ns);
void slice_deinit(struct slice *slice);

// Adds the span's part of the slice.
void slice_add(struct slice *slice, const struct profile *profile, const struct span *span);

// How many of the span's ticks lie before `ns`.
uint64_t span_ticks_before(const struct span *span, int64_t ns);

// A view of the profile with the samples of the slice alone, to be written: all else is borrowed
// from the profile, and from the slice until it changes. Not to be freed.
struct profile slice_view(struct slice *slice, const struct profile *profile);
