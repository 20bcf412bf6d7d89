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

struct cpu_log;
struct error;
struct modules;
struct options;
struct symbols;

struct view {
	const struct options *options; // borrowed, as the next one
	struct profile *whole;
	struct slice slice;
	struct long_waits waits;
	struct timeline timeline;
	struct sample *samples; // of --blame
	struct profile part;    // after view_end; borrows from the above
};

// Follows the profile, whose start is known, from now on. An error if --to is not after --from.
struct error *view_begin(struct view *view, const struct options *options, struct profile *whole);

// Makes view->part; call it when everything is counted. An error if the slice is shorter than two
// ticks, which tells nothing.
struct error *view_end(struct view *view);

// With --blame, follows waits in view->part; call it after view_end. Adds to the whole profile and
// to these. Prints how much could be followed, unless the options say quiet.
void view_follow_waits(struct view *view, struct modules *modules, struct symbols *symbols);

// True if the options ask for a part of the time.
bool view_is_sliced(const struct view *view);

// Returns the line about waits for CPUs in the view's part of the time (cpu_waits_text). The
// caller frees; NULL: there is none.
char *view_cpu_wait(const struct view *view, const struct cpu_log *log, bool *ret_by_others);

// Returns the timeline for struct report_source; NULL if the format shows none.
struct timeline *view_timeline(struct view *view);

// Frees what the view owns. Accepts a zeroed struct view.
void view_deinit(struct view *view);
