// SPDX-License-Identifier: MIT
// pusher: the uploader beside the sampler (--push): a process of its own, which finds the windows
// in the spool. The sampler never waits for it but at the end, and then not for long.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct error;
struct options;
struct push_counts;

struct pusher {
	const struct options *options; // borrowed; NULL: nothing is pushed
	pid_t uploader;                // 0: it has ended
	struct push_counts *counts;    // shared with it
	int64_t started_ns;            // when it was last, CLOCK_MONOTONIC
	char **labels;                 // comments for the windows, NULL-terminated
};

// The directory where windows wait if none is given; a new string. An error where there is no place
// for it.
struct error *pusher_find_spool(const struct options *options, char **ret);

// Starts the uploader of options->output, a directory that must be its user's alone.
struct error *pusher_start(struct pusher *pusher, const struct options *options);

// Makes the labels, when the process that is sampled is known. `command`: the one wrapped, or NULL.
void pusher_name_target(struct pusher *pusher, int pid, const char *command);

// From time to time: an uploader that was killed is started again.
void pusher_poll(struct pusher *pusher);

// All windows are written: waits until the uploader has sent them, for UPLOADER_FLUSH_S at most or
// until the user asks for the end once more.
void pusher_end(struct pusher *pusher);
void pusher_deinit(struct pusher *pusher);
