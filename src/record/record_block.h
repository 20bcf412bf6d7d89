// SPDX-License-Identifier: MIT
// record_block: builds and writes the blocks of a recording (record.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protobuf.h"
#include "record.h"

// Append a value to a record. For varints use protobuf_varint.
void record_put_signed(struct protobuf *buffer, int64_t value);
void record_put_bytes(struct protobuf *buffer, const void *bytes, size_t size);
void record_put_text(struct protobuf *buffer, const char *text);

// Appends a record with the bytes of `from` to `to`, and empties `from`.
void record_put(struct protobuf *to, enum record_type type, struct protobuf *from);

// Appends the records as the block of that number, and empties `records`.
void record_put_block(struct protobuf *to, uint32_t number, struct protobuf *records);

struct record_file {
	int fd; // borrowed; non-blocking
	uint32_t n_blocks;
	uint64_t written_bytes;
	bool failed;             // nothing can be written any more
	struct protobuf pending; // could not be written yet without waiting...
	size_t n_written;        // ...but for its first bytes
};

static inline size_t record_pending_bytes(const struct record_file *file)
{
	return file->pending.size - file->n_written;
}

// Writes what is pending, as far as the reader takes it. False if it cannot be written; errno tells
// why.
bool record_write_pending(struct record_file *file);

// Writes the header. False if it cannot be written; errno tells why.
bool record_write_header(struct record_file *file);

// Writes the records, if there are any, as a block, and empties the buffer. False as above.
bool record_write_block(struct record_file *file, struct protobuf *records);
