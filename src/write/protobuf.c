// SPDX-License-Identifier: MIT
#include "protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

// A field's key: (field number << 3) | wire type
// (https://protobuf.dev/programming-guides/encoding/).
enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

enum { MAX_VARINT_BYTES = 10 };

void protobuf_deinit(struct protobuf *buffer)
{
	free(buffer->bytes);
	*buffer = (struct protobuf){0};
}

void protobuf_clear(struct protobuf *buffer)
{
	buffer->size = 0;
}

static void reserve(struct protobuf *buffer, size_t more)
{
	buffer->bytes = memory_grow(buffer->bytes, &buffer->capacity, buffer->size + more, 1);
}

void protobuf_varint(struct protobuf *buffer, uint64_t value)
{
	reserve(buffer, MAX_VARINT_BYTES);
	for (; value >= 0x80; value >>= 7)
		buffer->bytes[buffer->size++] = value | 0x80;
	buffer->bytes[buffer->size++] = value;
}

static void key(struct protobuf *buffer, uint32_t field, enum wire_type type)
{
	protobuf_varint(buffer, (uint64_t)field << 3 | type);
}

void protobuf_int(struct protobuf *buffer, uint32_t field, uint64_t value)
{
	if (value == 0)
		return;
	key(buffer, field, WIRE_VARINT);
	protobuf_varint(buffer, value);
}

static void add_bytes(struct protobuf *buffer, uint32_t field, const void *bytes, size_t size)
{
	key(buffer, field, WIRE_BYTES);
	protobuf_varint(buffer, size);
	if (size == 0)
		return;
	reserve(buffer, size);
	memcpy(buffer->bytes + buffer->size, bytes, size);
	buffer->size += size;
}

void protobuf_append(struct protobuf *buffer, const struct protobuf *bytes)
{
	reserve(buffer, bytes->size);
	memcpy(buffer->bytes + buffer->size, bytes->bytes, bytes->size);
	buffer->size += bytes->size;
}

void protobuf_string(struct protobuf *buffer, uint32_t field, const char *string)
{
	add_bytes(buffer, field, string, strlen(string));
}

void protobuf_message(struct protobuf *buffer, uint32_t field, const struct protobuf *message)
{
	add_bytes(buffer, field, message->bytes, message->size);
}

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
