// SPDX-License-Identifier: MIT
#include "protobuf_cursor.h"

// https://protobuf.dev/programming-guides/encoding/
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

uint64_t protobuf_cursor_varint(struct protobuf_cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 70 && cursor->at < cursor->end; shift += 7) {
		const uint8_t byte = *cursor->at++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	cursor->failed = true;
	return 0;
}

// Returns the next `size` bytes and passes over them. NULL: they are not all there.
static const uint8_t *take(struct protobuf_cursor *cursor, uint64_t size)
{
	const uint8_t *bytes = cursor->at;

	if (cursor->failed || size > (uint64_t)(cursor->end - cursor->at)) {
		cursor->failed = true;
		return NULL;
	}
	cursor->at += size;
	return bytes;
}

bool protobuf_cursor_next(struct protobuf_cursor *cursor, struct protobuf_field *ret)
{
	while (cursor->at < cursor->end && !cursor->failed) {
		const uint64_t key = protobuf_cursor_varint(cursor);
		*ret = (struct protobuf_field){.number = (uint32_t)(key >> 3)};
		switch (key & 7) {
		case WIRE_VARINT:
			ret->value = protobuf_cursor_varint(cursor);
			return !cursor->failed;
		case WIRE_BYTES:
			ret->size = protobuf_cursor_varint(cursor);
			ret->bytes = take(cursor, ret->size);
			return !cursor->failed;
		case WIRE_FIXED64:
			take(cursor, 8);
			break;
		case WIRE_FIXED32:
			take(cursor, 4);
			break;
		default:
			cursor->failed = true;
		}
	}
	return false;
}
