// SPDX-License-Identifier: MIT
// protobuf_cursor: the fields of a protocol buffers message, one after the other.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct protobuf_cursor {
	const uint8_t *at, *end;
	bool failed; // the message is cut off or makes no sense
};

struct protobuf_field {
	uint32_t number;
	uint64_t value;       // of an integer
	const uint8_t *bytes; // of a string or message; NULL: it is an integer
	size_t size;
};

// The next field; those of a fixed size are passed over. False: there is none, or cursor->failed.
bool protobuf_cursor_next(struct protobuf_cursor *cursor, struct protobuf_field *ret);

// The next of packed integers, or 0 with cursor->failed.
uint64_t protobuf_cursor_varint(struct protobuf_cursor *cursor);

static inline struct protobuf_cursor protobuf_cursor_of(const void *bytes, size_t size)
{
	return (struct protobuf_cursor){.at = bytes, .end = (const uint8_t *)bytes + size};
}
