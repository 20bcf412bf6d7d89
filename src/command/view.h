// SPDX-License-Identifier: MIT
// view: the part of a profile that the options ask for: a slice of the time (--from, --to), long
// waits (--waits), or a timeline, for formats that show time.
//
// Call view_begin while nothing is counted yet; sample, or replay a recording; view_end; then
// write_report.
#pragma once

#include <stdbool.h>

#include "long_waits.h"
#include "profile.h"
#include "slice.h"
#include "timeline.h"
#include "write_report.h"

struct error;
struct options;
struct recording;

struct view {
	const struct options *options; // borrowed, as the next one
	struct profile *whole;
	struct slice slice;
	struct long_waits waits;
	struct timeline timeline;
	struct sample *samples; // of --blame
	struct profile part;    // after view_end; borrows from the above
	struct report_source source;
	const char **comments; // in it, as the next one
	char *cpu_wait;
};

// Follows the profile, whose start is known, from now on. An error if --to is not after --from.
struct error *view_begin(struct view *view, const struct options *options, struct profile *whole);

// Makes view->part; call it when everything is counted. An error if the slice is shorter than two
// ticks, which tells nothing.
struct error *view_end(struct view *view);

// Returns what write_report takes of view->part, which is of the recording; call it once, after
// view_end and when the recording's names are known. The view owns it, and it borrows from both.
// With --blame, follows waits: adds to the whole profile and to the names, and prints how much
// could be followed, unless the options say quiet.
const struct report_source *view_source(struct view *view, struct recording *recording);

// True if the options ask for a part of the time.
bool view_is_sliced(const struct view *view);

// Returns the timeline for struct report_source; NULL if the format shows none.
struct timeline *view_timeline(struct view *view);

// Frees what the view owns. Accepts a zeroed struct view.
void view_deinit(struct view *view);
