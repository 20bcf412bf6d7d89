// SPDX-License-Identifier: MIT
// recording: a recording read back into the profile that it was made of.
//
// What a recording holds is no more to be trusted than a target is: it may be cut short, damaged or
// made up. All that can be read is; the rest is counted.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "module.h"
#include "profile.h"
#include "symbolize.h"

struct error;
struct record_stream;

struct recording {
	struct profile profile; // its CLOCK_MONOTONIC times count from the start: that is 0
	struct modules modules;
	struct symbols symbols; // for all locations; count 0 where there is no name
	bool has_symbols;       // some are there
	int pid;
	bool children;                  // descendants were sampled, too
	char *host, *version, *comment; // clean text, or NULL
	uint64_t ticks, missed_ticks, thinned_ticks;
	int64_t held_ns;
	bool whole;                              // its end's mark is there
	bool full;                               // --max-size was reached
	uint64_t dropped_samples, dropped_names; // therefore
	// What is wrong with it.
	uint64_t lost_bytes;   // in no whole block
	uint64_t lost_blocks;  // by their numbers
	uint64_t bad_records;  // in blocks that are whole
	uint64_t lost_stacks;  // samples whose stacks were in what is lost
	uint64_t open_threads; // without an end: taken to have stayed where they were

	// Private to recording.c.
	struct record_stream *stream; // NULL: it does not come as one
	uint8_t *bytes;
	size_t size;
	size_t locations_capacity; // of symbols.locations
};

// Reads the file ("-": stdin) and what it says of its start: profile.start_time_ns, period_ns, pid.
// Not a recording, or one of a newer version: an error (EXIT_STATUS_TARGET).
struct error *recording_open(const char *path, struct recording *ret);

// The same of bytes in memory, taken over (malloc); `name` is for messages.
struct error *recording_open_bytes(const char *name, uint8_t *bytes, size_t size,
                                   struct recording *ret);

// Replays all of it into recording->profile, whose followers are told, once.
void recording_replay(struct recording *recording);

// A recording that comes as a stream, while it is made; nothing is known yet.
void recording_begin_stream(struct recording *ret);

// The next bytes of it, cut anywhere: the profile's followers are told. False: it is no recording,
// or damaged; nothing after that is read.
bool recording_feed(struct recording *recording, const void *bytes, size_t size);

// Until when the stream has told what happened, from the start. Threads that are in a span then are
// in it still.
int64_t recording_now_ns(const struct recording *recording);

// Nothing more comes: all spans end, as at the end of a replay.
void recording_end_stream(struct recording *recording);

void recording_deinit(struct recording *recording);

// Has symbols.locations one for each location, new ones without a name. For record_reader.c.
void recording_fit_symbols(struct recording *recording);
