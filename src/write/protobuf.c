// SPDX-License-Identifier: MIT
#include "protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

// A field's key: (field number << 3) | wire type.
enum wire_type { WIRE_VARINT = 0, WIRE_LENGTH_DELIMITED = 2 };

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
	key(buffer, field, WIRE_LENGTH_DELIMITED);
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
