// SPDX-License-Identifier: MIT
// window_files: writes parts of a profile to files of their own while sampling goes on.
//
// A forked process writes each file, as looking up names may take seconds, during which the stream
// must be read on. That process also runs options->exec when the file is complete. All files are in
// one directory, named by host, pid, number and time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct modules;
struct options;
struct supervise_ends;
struct profile;
struct sample;
struct figures_range;
struct timeline;

// What a window has of the profile, which the next one gets if it cannot be written.
struct window_back {
	int64_t start_ns;
	size_t *ids; // of the samples in the profile
	struct sample *samples;
	size_t n_samples;
	struct figures_range *figures; // by thread
	size_t n_figures;
};

// Frees it. Accepts NULL.
void window_back_destroy(struct window_back *back);

// A file that is being written, or is finished.
struct window_file {
	pid_t child; // writes it; 0: it is finished
	char *path;
	uint64_t samples;
	struct window_back *back; // NULL: it is lost if it cannot be written
};

struct window_files {
	const struct options *options;
	struct modules *modules;           // borrowed, as the above and the next one
	const struct supervise_ends *ends; // which a process that writes does not keep open
	int pid;                           // of the target; the caller sets it
	char *directory;                   // NULL: the current one
	uint32_t n_begun;
	struct window_file *items; // being written, or finished and kept; oldest first
	size_t count, capacity;
	uint64_t n_lost, n_lost_samples; // files that could not be written, and their samples
	uint64_t n_exec_failed;          // files that are there, but options->exec failed
	const char *const *labels;       // more comments, NULL-terminated; NULL: none; borrowed
	struct window_back **backs;      // of windows that could not be written
	size_t n_backs, backs_capacity;
};

// Returns the path of a window's file in the directory ("": the current one), which the caller
// frees.
char *window_files_path(const char *directory, int pid, uint32_t number, int64_t time_ns,
                        const char *suffix);

// Makes the directory if it does not exist. An error if files cannot be written to it.
struct error *window_files_init(struct window_files *files, const struct options *options,
                                struct modules *modules, const struct supervise_ends *ends);
void window_files_deinit(struct window_files *files);

// A part of the time that is to be written.
struct window_part {
	struct profile *view;        // its samples
	const struct profile *whole; // the profile that it is a part of
	struct timeline *timeline;   // for a format that shows time; NULL: none
	struct window_back *back;    // window_files takes it over; NULL: it is lost if not written
};

// Begins to write the part to a file whose name has time_ns in it. `comment` is borrowed.
void window_files_write(struct window_files *files, const struct window_part *part, int64_t time_ns,
                        const char *comment);

// Returns what a window had that could not be written; the caller destroys it. NULL: none.
struct window_back *window_files_take_back(struct window_files *files);

// True while so many are being written that one more would only take the CPU from them.
bool window_files_is_behind(const struct window_files *files);

// Notes which processes have finished and whether they failed, and removes the oldest files beyond
// options->keep. `wait`: waits for all.
void window_files_poll(struct window_files *files, bool wait);

// Waits for all that is being written. Returns what of all that was begun is lost; NULL: nothing.
struct error *window_files_end(struct window_files *files);
