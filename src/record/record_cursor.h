// SPDX-License-Identifier: MIT
// record_cursor: reads the numbers and texts of a record; past its end everything is 0, and
// `failed`.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
	const uint8_t *at, *end; // borrowed
	bool failed;
};

// Times and durations are no longer than this, some three years: sums of them stay far from 2^63.
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

// Zigzag: 0, -1, 1, -2, ...
static inline int64_t cursor_signed(struct cursor *cursor)
{
	const uint64_t value = cursor_varint(cursor);

	return (int64_t)(value >> 1 ^ -(value & 1));
}

// A time in nanoseconds, 0 to CURSOR_MAX_NS.
static inline int64_t cursor_time(struct cursor *cursor)
{
	const uint64_t value = cursor_varint(cursor);

	cursor->failed |= value > CURSOR_MAX_NS;
	return value > CURSOR_MAX_NS ? 0 : (int64_t)value;
}

// `size` bytes; where there are not as many, none, but never NULL.
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

// A length and as many bytes, without a NUL at the end.
static inline const char *cursor_text(struct cursor *cursor, size_t *ret_size)
{
	const uint64_t size = cursor_varint(cursor);
	const uint8_t *bytes = cursor_bytes(cursor, size);

	*ret_size = cursor->failed ? 0 : size;
	return (const char *)bytes;
}
