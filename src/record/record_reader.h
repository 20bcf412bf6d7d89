// SPDX-License-Identifier: MIT
// record_reader: the records of a recording's blocks, read into a profile.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct profile;
struct recording;

// From the recording's numbers to the profile's.
struct id_map {
	uint32_t *ids;
	size_t count, capacity;
};

struct record_reader {
	struct recording *recording;
	struct profile *profile;
	struct id_map modules, locations, stacks, threads, waits, labels, functions;
	uint32_t *frames; // of the last stack of the record at hand
	size_t n_frames, frames_capacity;
	uint32_t lost_module;
	int64_t now_ns;  // the time of the block's last record
	int64_t last_ns; // of the last tick
	uint64_t next_block;
	uint64_t checked_bytes;
};

// Ready to read blocks into the recording.
void record_reader_init(struct record_reader *reader, struct recording *recording);
void record_reader_deinit(struct record_reader *reader);

// Reads a block's records. What cannot be read is skipped, and counted in the recording.
void record_reader_block(struct record_reader *reader, const uint8_t *bytes, size_t size);

// Reads the start alone, if the block begins with it.
void record_reader_start(struct record_reader *reader, const uint8_t *bytes, size_t size);

// Where there is no end: each thread that was not seen to end has stayed where it was, in every
// tick until the last one that is told of.
void record_reader_prolong(struct record_reader *reader);
