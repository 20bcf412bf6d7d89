// SPDX-License-Identifier: MIT
// windows: writes the windows of a run (--every, --ring, --push) from its stream, in the writer's
// process.
//
// Where windows end is told in the stream (window_ends.h). They are written (window_files.h), and
// sent, by other processes, so that reading the stream waits neither for names nor for a disk.
//
// --every: a window holds what the profile's sums have grown by since the previous one, so that all
// add up to the whole exactly; one that cannot be written becomes part of the next, unless the
// format shows time. --ring: it is the last stretch of time, which a ring keeps. Windows of --every
// are no slices of kept spans, as those need 32 bytes for each change of a thread: for 29,000
// samples the writer had 1.0 MB more, and an hour with 20 busy threads at 99 Hz takes 228 MB.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "pusher.h"
#include "ring.h"
#include "timeline.h"
#include "window_files.h"

struct error;
struct profile;
struct recording;
struct run_stats;
struct sample;
struct supervise_writer;
struct window_end;

struct windows {
	struct options options; // ->output may be the spool; what it points to is borrowed, as...
	struct recording *recording; // ...the next four
	struct profile *profile;     // the recording's, whose times those below are
	const struct run_stats *stats;
	const struct supervise_writer *process;
	struct window_files files;
	struct pusher pusher;        // --push
	char *spool;                 // its directory, if none was given
	struct error *metrics_error; // the first one
	struct ring ring;            // --ring

	// --every.
	struct sample *written; // the part of each of the profile's samples in earlier windows
	size_t n_written, written_capacity;
	int64_t start_ns;      // of the window at hand
	struct timeline spans; // that have ended in it, for a format that shows time, and...
	int64_t *shown_ns;     // ...for each thread the time up to which earlier windows show it
	size_t n_shown, shown_capacity;
	struct thread_figures *figures; // by thread, what the kernel had counted at its begin
	size_t n_figures, figures_capacity;
};

// True if the options ask for windows.
bool windows_are_asked(const struct options *options);

// Opens all that may be refused, and starts the uploader. windows_deinit must follow.
struct error *windows_open(struct windows *windows, const struct options *options,
                           struct recording *recording, const struct run_stats *stats,
                           const struct supervise_writer *process);
void windows_deinit(struct windows *windows);

// Call it when the recording's start is known, and nothing is counted yet.
void windows_begin(struct windows *windows);

// Call it where the stream says that a window ends: begins to write it.
void windows_end_window(struct windows *windows, const struct window_end *end);

// Call it where the stream says that the profile may be collected: forgets what is in no window any
// more, once it is much (profile_collect.h).
void windows_collect(struct windows *windows);

// Looks after the processes that write and send. Call it from time to time.
void windows_poll(struct windows *windows);

// Writes the last window, and waits for all that is being written or sent. Call it when the stream
// has ended, and nothing has not begun. An error if anything is lost.
struct error *windows_end(struct windows *windows);
