// SPDX-License-Identifier: MIT
// window_files: writes parts of a profile to files of their own while sampling goes on.
//
// Each is written by a process of its own, forked off: looking names up may take seconds, in which
// the sampler ticks on. That process also runs options->exec when the file is there. The files are
// in one directory, named by host, pid, number and time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct modules;
struct options;
struct push_counts;
struct profile;
struct timeline;

// A file that is written, or was.
struct window_file {
	pid_t child; // at work on it; 0: it is finished
	char *path;
	uint64_t samples;
};

struct window_files {
	const struct options *options;
	struct modules *modules; // borrowed, as the above
	int pid;                 // of the target; to be set
	char *directory;         // NULL: the current one
	char host[65];
	uint32_t n_begun;
	struct window_file *items; // at work, or finished and there, oldest first
	size_t count, capacity;
	bool failed;                     // one of them did
	uint64_t n_lost, n_lost_samples; // those that did, and what was in them
	const char *const *labels;       // comments more, NULL-terminated; NULL: none; borrowed
	// --push: windows that cannot be written now are tried again, by the processes that hold
	// them, until these end.
	const struct push_counts *counts; // NULL: no push; borrowed
};

// Makes the directory if it is not there. An error where files cannot be written to it.
struct error *window_files_init(struct window_files *files, const struct options *options,
                                struct modules *modules);
void window_files_deinit(struct window_files *files);

// A part of the time, to be written.
struct window_part {
	const struct profile *view;  // its samples
	const struct profile *whole; // the profile that it is a part of
	struct timeline *timeline;   // for a format that shows time; NULL: none
};

// Begins to write the part; the file's name has the time. `comment` is borrowed. False: no process
// could be started.
bool window_files_write(struct window_files *files, const struct window_part *part, int64_t time_ns,
                        const char *comment);

// Notes who has finished, and whether well, and removes what is more than options->keep; `wait`:
// waits for all.
void window_files_poll(struct window_files *files, bool wait);
