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
