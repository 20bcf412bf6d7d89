// SPDX-License-Identifier: MIT
// record_writer: tells another process what is sampled, as the stream of a recording, by following
// the profile's spans.
//
// It writes at least every 100 ms, so that no more than 100 ms are lost if the sampler is killed.
// It never waits: if the reader lags behind, samples are counted without stacks. A thread that
// sleeps on costs nothing.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu_log;
struct modules;
struct profile;
struct record_writer;
struct run_stats;
struct window_end;

struct record_options {
	int pid;
	bool children;      // descendants, too
	uint64_t max_bytes; // 0: no limit
	int fd;             // is written to; non-blocking; borrowed
	int files; // the reader's socket for modules' files (passed_files.h); borrowed; 0: none
	const struct cpu_log *cpu_log; // is recorded as it grows; borrowed; NULL: none
};

// Begins a recording of the profile, which it follows from now on; call it before the first tick.
// Borrows all arguments; the caller destroys the writer before the profile.
struct record_writer *record_writer_create(const struct record_options *options,
                                           struct profile *profile, const struct modules *modules,
                                           const struct run_stats *stats);
void record_writer_destroy(struct record_writer *writer);

// Writes what is due; call it after each tick. False if it cannot be written: errno tells why, and
// what was written before stays.
bool record_writer_tick(struct record_writer *writer);

// Tells the reader of a stream that a window ends here, and all of every thread up to now. False:
// the reader lags behind; ask again after the next tick.
bool record_writer_end_window(struct record_writer *writer, const struct window_end *end);

// Call it after each tick of a run that may go on for ever, and whose reader only writes windows:
// forgets all samples, stacks and threads that are of the past, once there are many; but the first
// n_first_stacks, which the sampler had before its first tick.
void record_writer_forget(struct record_writer *writer, size_t n_first_stacks);

// Appends the comment and the end's mark, and waits for the reader. Call it when sampling is over
// and all spans have ended. False as above.
bool record_writer_finish(struct record_writer *writer, const char *comment);
