// SPDX-License-Identifier: MIT
// protobuf_cursor: reads the fields of a protocol buffers message, one after the other.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
