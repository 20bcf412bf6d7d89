// SPDX-License-Identifier: MIT
// record_copy: writes a recording that comes as a stream to a file, and ends it with names.
//
// Each block is written as soon as it is read, so that no more is lost than the writer has not read
// if it is killed.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct recording;
struct symbols;

// Maps a recording's numbers to those of what it is read into; UINT32_MAX: none.
struct id_map {
	uint32_t *ids;
	size_t count, capacity;
};

struct record_copy {
	int fd;             // borrowed
	uint64_t max_bytes; // names that do not fit are left out; 0: no limit
	int failed;         // the errno of a write that failed (writing.h); no more is written then
	// Private.
	uint64_t written_bytes;
	uint32_t n_parts; // that are written: the header and blocks
	struct id_map modules, locations;
};

void record_copy_deinit(struct record_copy *copy);

// Writes the header, or a block, but not that of the end.
void record_copy_add(struct record_copy *copy, const void *bytes, size_t size);

// Takes over the numbers of a stream that has been read.
void record_copy_take_numbers(struct record_copy *copy, struct id_map *modules,
                              struct id_map *locations);

// Appends the names (NULL: none), as far as there is room for them, and, if the recording is whole,
// its comment and the end's mark. Call it when the stream has ended.
void record_copy_finish(struct record_copy *copy, const struct recording *recording,
                        const struct symbols *symbols);
