// SPDX-License-Identifier: MIT
// record_block: the blocks of a recording (record.h) as they are built and written.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protobuf.h"
#include "record.h"

// Pieces of records. Varints are protobuf_varint's.
void record_put_signed(struct protobuf *buffer, int64_t value);
void record_put_bytes(struct protobuf *buffer, const void *bytes, size_t size);
void record_put_text(struct protobuf *buffer, const char *text);

// Appends a record to `to` with what is in `from`, and empties that.
void record_put(struct protobuf *to, enum record_type type, struct protobuf *from);

struct record_file {
	int fd; // borrowed
	uint32_t n_blocks;
	uint64_t written_bytes;
	bool failed;             // nothing can be written any more
	bool never_waits;        // for a reader; the descriptor is non-blocking then
	struct protobuf pending; // not written for that
};

// Writes what is pending as far as somebody reads. False: it cannot be written, errno says why.
bool record_write_pending(struct record_file *file);

// Each writes all of it, or returns false with errno set.
bool record_write_header(struct record_file *file);

// Writes the records as a block, if there are any, and empties the buffer.
bool record_write_block(struct record_file *file, struct protobuf *records);
