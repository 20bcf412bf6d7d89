// SPDX-License-Identifier: MIT
// window_run: writes the windows of a run (--every, --ring, --push) from its stream, in the
// writer's process.
//
// Where windows end is told in the stream (window_ends.h). Windows are written, and sent, by other
// processes, so that reading the stream waits neither for names nor for a disk.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "flight_recorder.h"
#include "options.h"
#include "pusher.h"
#include "window_files.h"
#include "windows.h"

struct error;
struct recording;
struct run_stats;
struct supervise_writer;
struct window_end;

struct window_run {
	struct options options; // ->output may be the spool; what it points to is borrowed, as...
	struct recording *recording; // ...the next three
	const struct run_stats *stats;
	const struct supervise_writer *process;
	struct window_files files;
	struct flight_recorder recorder; // --ring
	struct windows windows;          // --every
	struct pusher pusher;            // --push
	char *spool;                     // its directory, if none was given
	struct error *metrics_error;     // the first one
};

// True if the options ask for windows.
bool window_run_is_asked(const struct options *options);

// Opens all that may be refused, and starts the uploader. window_run_deinit must follow.
struct error *window_run_open(struct window_run *run, const struct options *options,
                              struct recording *recording, const struct run_stats *stats,
                              const struct supervise_writer *process);
void window_run_deinit(struct window_run *run);

// Call it when the recording's start is known, and nothing is counted yet.
void window_run_begin(struct window_run *run);

// Call it where the stream says that a window ends.
void window_run_end_window(struct window_run *run, const struct window_end *end);

// Call it where the stream says that the profile may be collected.
void window_run_collect(struct window_run *run);

// Looks after the processes that write and send. Call it from time to time.
void window_run_poll(struct window_run *run);

// Writes the last window, and waits for all that is being written or sent. Call it when the stream
// has ended, and nothing has not begun. An error if anything is lost.
struct error *window_run_end(struct window_run *run);
