// SPDX-License-Identifier: MIT
// record_writer: writes a recording while sampling goes on, as it follows the profile's spans.
//
// What has happened is written at least every 100 ms, so that no more than that is lost when the
// profiler is killed or the disk is full. A thread that sleeps on costs nothing.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct modules;
struct profile;
struct record_writer;
struct run_stats;
struct symbols;

struct record_options {
	int pid;
	bool children;      // descendants, too
	uint64_t max_bytes; // 0: no limit
	int fd;             // to write to; borrowed
	bool never_waits;   // for a reader: what one who lags behind cannot be told is counted
};

// A new recording of the profile, which it follows from now on, before the first tick. All is
// borrowed; the caller destroys it before the profile.
struct record_writer *record_writer_create(const struct record_options *options,
                                           struct profile *profile, const struct modules *modules,
                                           const struct run_stats *stats);
void record_writer_destroy(struct record_writer *writer);

// After each tick: writes what is due. False: it cannot be written, errno says why; what was
// written before stays.
bool record_writer_tick(struct record_writer *writer);

// Sampling is over: all spans have ended. Appends the names (symbols; NULL: none), as far as there
// is room for them, the comment and the end's mark. False: as above.
bool record_writer_finish(struct record_writer *writer, const struct symbols *symbols,
                          const char *comment);

// How many samples, and locations' names, were left out for want of room.
uint64_t record_writer_dropped_samples(const struct record_writer *writer);
uint64_t record_writer_dropped_names(const struct record_writer *writer);
