// SPDX-License-Identifier: MIT
// windows: makes a profile of each stretch of time (--every), all of which add up to the whole
// exactly.
//
// A window holds what the profile's sums have grown by since the previous window; one that cannot
// be written becomes part of the next, unless the format shows time. Times are those of the
// profile.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "timeline.h"

struct window_files;
struct options;
struct profile;
struct sample;

struct windows {
	const struct options *options; // borrowed, as the next two
	struct profile *profile;
	struct window_files *files;
	struct sample *written; // the part of each of the profile's samples in earlier windows
	size_t n_written, written_capacity;
	int64_t start_ns;      // of the window at hand
	bool shows_time;       // the format shows time, for which are...
	struct timeline spans; // ...those that have ended in the window at hand, and...
	int64_t *shown_ns;     // ...for each thread the time up to which earlier windows show it
	size_t n_shown, shown_capacity;
	struct thread_figures *figures; // by thread, what the kernel had counted at its begin
	size_t n_figures, figures_capacity;
	size_t collect_at; // with this many samples, those that are written are forgotten
};

// Call it before anything is counted, when the profile's start is known.
void windows_begin(struct windows *windows, const struct options *options, struct profile *profile,
                   struct window_files *files);
void windows_deinit(struct windows *windows);

// Begins to write the window that ends now. False: it becomes one with the next, as too many are
// being written.
bool windows_cut(struct windows *windows, int64_t now_ns);

// Forgets what is in windows already, once it is much (profile_collect.h).
void windows_collect(struct windows *windows);

// Waits for all that is being written, and begins to write the last one, with what is left of them.
void windows_end(struct windows *windows, int64_t now_ns);
