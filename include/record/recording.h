// SPDX-License-Identifier: MIT
// recording: reads a recording back into the profile of which it was made.
//
// A recording is trusted no more than a target: it may be cut short, damaged or made up. All that
// can be read is read; the rest is counted.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu_waits.h"
#include "module.h"
#include "passed_files.h"
#include "profile.h"
#include "symbolize.h"

struct error;
struct record_copy;
struct record_stream;

// Where a stream says that a window ends.
struct window_end {
	int64_t at_ns;   // what belongs to it is up to here, since the start
	uint64_t n_late; // threads that have not stopped since
	const char *why; // it was asked for
};

struct recording {
	struct profile profile; // its times count from its start, which is 0
	struct modules modules;
	struct symbols symbols; // for all locations; count 0: without a name
	bool has_symbols;       // there are names in it; else see recording_find_names
	int pid;
	bool children;                  // descendants were sampled, too
	char *host, *version, *comment; // clean text, or NULL
	uint64_t ticks, missed_ticks, thinned_ticks;
	int64_t held_ns;
	uint64_t n_codes;       // names of code that a process made, which have come until now
	struct cpu_log cpu_log; // empty: it was made without, or the kernel did not tell
	bool whole;             // it has the mark of its end, and how many...
	uint64_t n_samples;     // ...there were in all
	bool full;              // --max-size was reached, so that...
	uint64_t dropped_samples, dropped_names; // ...these are missing
	// What is wrong with it.
	uint64_t lost_bytes;   // outside of whole blocks
	uint64_t lost_blocks;  // missing in the sequence of block numbers
	uint64_t bad_records;  // in blocks that are whole
	uint64_t lost_stacks;  // samples whose stacks were in a lost part
	uint64_t open_threads; // have no end: are taken to have stayed where they were

	// Of a stream: called when its start is known, before anything is replayed; where a window
	// ends; and where the profile may be collected (profile_collect.h). NULL: nothing.
	void (*started)(void *context);
	void (*window_ended)(void *context, const struct window_end *end);
	void (*may_collect)(void *context);
	void *context;            // of these
	struct record_copy *copy; // gets what is whole of the stream; NULL: none; borrowed

	// Private to recording.c.
	struct taken_files files;     // of modules that a stream has not named yet
	struct record_stream *stream; // NULL: it is not read from a stream
	uint8_t *bytes;
	size_t size;
	int64_t clock_offset_ns; // clock.h
};

// True if the bytes are the beginning of a recording.
bool recording_is(const void *bytes, size_t size);

// Reads the file ("-": stdin), and from its start profile.start_time_ns, period_ns and pid. Returns
// an error (EXIT_STATUS_TARGET) if it is not a recording, or one of a newer version.
struct error *recording_open(const char *path, struct recording *ret);

// Does the same with bytes in memory (malloc), which it takes over; `name` is for messages.
struct error *recording_open_bytes(const char *name, uint8_t *bytes, size_t size,
                                   struct recording *ret);

// Replays all of it into recording->profile, and so to the profile's followers. Call it once.
void recording_replay(struct recording *recording);

// Looks up the names of a recording that is replayed and has none, in the files that it has been
// given, or else in those of this machine (local_files.h, `root` is for that).
void recording_find_names(struct recording *recording, const char *root,
                          const struct symbolize_options *options);

// Begins a recording that comes as a stream while it is made; nothing is known of it yet.
void recording_begin_stream(struct recording *ret);

// Takes the stream's next bytes, which may be cut anywhere, and replays what is whole. False if it
// is damaged or not a recording; nothing more is read then.
bool recording_feed(struct recording *recording, const void *bytes, size_t size);

// Takes the files of the stream's modules that have come through the socket; call it between
// reading the stream's next bytes and recording_feed.
void recording_take_files(struct recording *recording, int socket);

// Returns the time since its start up to which the stream tells what happened. A thread that is in
// a span at that time is still in it.
int64_t recording_now_ns(const struct recording *recording);

// Moves the start of a stream's profile where the clock of the machine was set meanwhile, as
// profile_follow_clock does for who samples.
void recording_follow_clock(struct recording *recording);

// Ends all spans, as the end of a replay does. Call it when nothing more comes.
void recording_end_stream(struct recording *recording);

void recording_deinit(struct recording *recording);
