// SPDX-License-Identifier: MIT
// record_cursor: reads the numbers and texts of a record. Reading past the end returns 0 and sets
// `failed`.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
	const uint8_t *at, *end; // borrowed
	bool failed;
};

// The limit of times and durations, some three years, so that sums of them stay far below 2^63.
#define CURSOR_MAX_NS (INT64_C(100000000) * 1000000000)

static inline size_t cursor_left(const struct cursor *cursor)
{
	return cursor->end - cursor->at;
}

static inline bool cursor_has_more(const struct cursor *cursor)
{
	return !cursor->failed && cursor->at < cursor->end;
}

static inline uint64_t cursor_varint(struct cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
		const uint8_t byte = *cursor->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	cursor->failed = true;
	return 0;
}

// Reads a signed number in zigzag encoding: 0, -1, 1, -2, ...
static inline int64_t cursor_signed(struct cursor *cursor)
{
	const uint64_t value = cursor_varint(cursor);

	return (int64_t)(value >> 1 ^ -(value & 1));
}

// Reads a time in nanoseconds, 0 to CURSOR_MAX_NS.
static inline int64_t cursor_time(struct cursor *cursor)
{
	const uint64_t value = cursor_varint(cursor);

	cursor->failed |= value > CURSOR_MAX_NS;
	return value > CURSOR_MAX_NS ? 0 : (int64_t)value;
}

// Reads `size` bytes. If there are fewer, it reads none; never returns NULL.
static inline const uint8_t *cursor_bytes(struct cursor *cursor, uint64_t size)
{
	const uint8_t *bytes = cursor->at;

	if (cursor->failed || size > cursor_left(cursor)) {
		cursor->failed = true;
		return (const uint8_t *)"";
	}
	cursor->at += size;
	return bytes;
}

// Reads a length and as many bytes, which do not end with a NUL.
static inline const char *cursor_text(struct cursor *cursor, size_t *ret_size)
{
	const uint64_t size = cursor_varint(cursor);
	const uint8_t *bytes = cursor_bytes(cursor, size);

	*ret_size = cursor->failed ? 0 : size;
	return (const char *)bytes;
}
