// SPDX-License-Identifier: MIT
// protobuf: writes the wire format of protocol buffers into a growing buffer.
//
// A message is built field by field in a buffer of its own and then put as one field into the
// buffer of the message around it. Only what proto3 integers, strings and messages need.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct protobuf {
	uint8_t *bytes;
	size_t size, capacity;
};

// A zeroed struct protobuf is an empty buffer.
void protobuf_deinit(struct protobuf *buffer);

// Empties the buffer and keeps its room.
void protobuf_clear(struct protobuf *buffer);

// Writes one bare varint: seven bits a byte, the lowest first, bit 7 set on all but the last.
void protobuf_varint(struct protobuf *buffer, uint64_t value);

// Writes an integer field (int64, uint64, bool). 0 is proto3's default and takes no bytes.
void protobuf_int(struct protobuf *buffer, uint32_t field, uint64_t value);

// Writes bytes as they are.
void protobuf_append(struct protobuf *buffer, const struct protobuf *bytes);

// Writes a field of bytes: a string, or a message (or packed varints), even if it is empty.
void protobuf_string(struct protobuf *buffer, uint32_t field, const char *string);
void protobuf_message(struct protobuf *buffer, uint32_t field, const struct protobuf *message);

// Reads the fields of a protocol buffers message, one after the other.
struct protobuf_cursor {
	const uint8_t *at, *end;
	bool failed; // the message is cut off or damaged
};

struct protobuf_field {
	uint32_t number;
	uint64_t value;       // of an integer
	const uint8_t *bytes; // of a string or message; NULL: the field is an integer
	size_t size;
};

// Reads the next field; skips those of a fixed size. Returns false at the end, and where the
// message is damaged (cursor->failed).
bool protobuf_cursor_next(struct protobuf_cursor *cursor, struct protobuf_field *ret);

// Reads the next of packed integers; returns 0 and sets cursor->failed if there is none.
uint64_t protobuf_cursor_varint(struct protobuf_cursor *cursor);

static inline struct protobuf_cursor protobuf_cursor_of(const void *bytes, size_t size)
{
	return (struct protobuf_cursor){.at = bytes, .end = (const uint8_t *)bytes + size};
}
