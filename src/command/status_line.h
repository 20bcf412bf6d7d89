// SPDX-License-Identifier: MIT
// status_line: the line on the terminal that says how the run goes.
#pragma once

#include <stdint.h>

struct run_stats;

// The status line, which is shown at most a few times a second. A zeroed one shows nothing.
struct status_line {
	int fd; // its own way to the terminal, which never waits; 0: none
	int64_t shown_ns;
};

// Begins a line on stderr. Shows none if that is no terminal, or may not be opened anew.
void status_line_begin(struct status_line *status);

// Shows the state of the run. It may be called at any rate, and while threads are held.
void status_line_update(struct status_line *status, const struct run_stats *stats);

// Wipes the line and ends it.
void status_line_end(struct status_line *status);
