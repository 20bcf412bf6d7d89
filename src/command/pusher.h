// SPDX-License-Identifier: MIT
// pusher: runs the uploader beside the writer (--push), as a process of its own that finds the
// windows in the spool. The writer waits for it only at the end, and not for long.
#pragma once

#include <sys/types.h>

struct error;
struct options;
struct push_counts;
struct supervise_ends;

struct pusher {
	const struct options *options;     // borrowed, as the next one; NULL: nothing is pushed
	const struct supervise_ends *ends; // which the uploader does not keep open; NULL: none
	pid_t uploader;                    // 0: it has ended
	struct push_counts *counts;        // shared with it
	int64_t started_ns;                // when it was last started, CLOCK_MONOTONIC
	char **labels;                     // comments for the windows, NULL-terminated
};

// Finds the directory in which windows wait if none is given; *ret is a new string. An error if
// there is no place for one.
struct error *pusher_find_spool(const struct options *options, char **ret);

// Starts the uploader for options->output, a directory that must belong to its user alone.
struct error *pusher_start(struct pusher *pusher, const struct options *options,
                           const struct supervise_ends *ends);

// Makes the labels; call it when the sampled process is known. `command`: the one that was started,
// or NULL.
void pusher_name_target(struct pusher *pusher, int pid, const char *command);

// Starts the uploader again if it was killed. Call it from time to time.
void pusher_poll(struct pusher *pusher);

// Waits until the uploader has sent all windows, for UPLOADER_FLUSH_S at most, or until the user
// asks for the end once more. Call it when all windows are written.
void pusher_end(struct pusher *pusher);
void pusher_deinit(struct pusher *pusher);
