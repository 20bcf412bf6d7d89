// SPDX-License-Identifier: MIT
// writer: a format in which a finished profile is written. One const struct each, in its own
// file: write_folded.c, write_pprof.c.
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct error;
struct explain_lines;
struct modules;
struct profile;
struct symbols;
struct timeline;
struct weights;

// All that a writer may look at; borrowed.
struct report {
	const struct profile *profile;
	const struct modules *modules;
	const struct symbols *symbols;
	const bool *selected;      // which samples to write, one for each; NULL: all
	struct timeline *timeline; // for writers that show time; else NULL
	const struct weights
	    *weights;                // of each thread's time in it; the profile's is weighed itself
	const char *title;           // of a page; NULL: its process's name and pid
	const char *const *comments; // NULL-terminated lines for formats that can hold them
	const char *cpu_wait;        // one about waits for CPUs (cpu_waits.h); NULL: none
	bool cpu_by_others;          // ...for which other processes are the cause
	const struct explain_lines *findings; // for a page (write_explain.h); NULL: none
	const char *input;                    // the recording that it is of; NULL: none
	int pid;
	bool process_roots; // the process's name and pid as root frame, and as a label
	bool thread_roots;  // the thread's name as root frame
	// Keys of labels (labels.h) that are root frames, NULL-terminated, outermost first; NULL:
	// none are.
	const char *const *label_frames;
	bool task_ids; // tasks that are alike are not added up
	bool lines;    // file:line in the frames' names
	bool syscalls; // the system call that a thread waits in as a frame
};

struct writer {
	const char *name;            // as in --format
	const char *const *suffixes; // NULL-terminated file name endings that mean it
	const char *default_suffix;  // for names that the profiler makes
	bool binary;                 // not to be written to a terminal
	const char *next_command;    // printf format with one %s, the file: what to run next; NULL:
	                             // there is no command
	bool shows_time;             // it writes report->timeline
	// Writes the report to the stream, which may be a pipe. Errors of the stream itself stay in
	// its error indicator, for the caller; others are returned (NULL: none).
	struct error *(*write)(const struct report *report, FILE *stream);
};

extern const struct writer writer_folded;
extern const struct writer writer_speedscope;
extern const struct writer writer_firefox;
extern const struct writer writer_chrome;
extern const struct writer writer_sentry;
extern const struct writer writer_pprof;
extern const struct writer writer_html;
extern const struct writer writer_record; // has no write

// Their names, for messages; tests compare it with the writers themselves.
#define WRITER_NAMES "folded, pprof, html, record, speedscope, firefox, chrome or sentry"

// Returns the writer of that name, or NULL.
const struct writer *writer_by_name(const char *name);

// Returns the writer whose suffix the file's name ends with, or NULL.
const struct writer *writer_by_file_name(const char *file_name);
