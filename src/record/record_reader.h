// SPDX-License-Identifier: MIT
// record_reader: reads the records of a recording's blocks into a profile.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record_copy.h"

struct profile;
struct recording;

struct record_reader {
	struct recording *recording;
	struct profile *profile;
	struct id_map modules, locations, stacks, threads, waits, labels, functions;
	uint32_t *frames; // the previous stack of the current record
	size_t n_frames, frames_capacity;
	uint32_t lost_module;
	int64_t now_ns;  // the time of the block's last record
	int64_t last_ns; // the time of the last tick
	uint64_t next_block;
	uint64_t checked_bytes;
	bool is_told_passes; // of threads
};

// Prepares to read blocks into the recording.
void record_reader_init(struct record_reader *reader, struct recording *recording);
void record_reader_deinit(struct record_reader *reader);

// Reads a block's records. Skips what cannot be read, and counts it in the recording.
void record_reader_block(struct record_reader *reader, const uint8_t *bytes, size_t size);

// Reads only the RECORD_START, if the block begins with one.
void record_reader_start(struct record_reader *reader, const uint8_t *bytes, size_t size);

// Gives the files that have come to the modules that are known by now.
void record_reader_give_files(struct record_reader *reader);

// Prolongs the spans of threads that were not seen to end up to the last tick; for a recording
// without an end.
void record_reader_prolong(struct record_reader *reader);
