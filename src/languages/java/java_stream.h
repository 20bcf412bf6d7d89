// SPDX-License-Identifier: MIT
// java_stream: reads numbers as HotSpot packs them (UNSIGNED5 in unsigned5.hpp): one to five bytes,
// the lowest first; a byte of 192 or more is followed by another.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct java_stream {
	const uint8_t *at, *end;
	bool leaves_out_zero; // from JDK 20 on no byte is 0: each is one more than what it means
};

static inline uint8_t java_stream_byte(struct java_stream *stream)
{
	return stream->at < stream->end ? *stream->at++ : 0;
}

static inline uint32_t java_stream_unsigned(struct java_stream *stream)
{
	enum { FIRST_FOLLOWED = 192, BITS = 6, MAX_BYTES = 5 };
	uint32_t sum = 0;

	for (int i = 0; i < MAX_BYTES; i++) {
		const uint8_t byte = java_stream_byte(stream);
		sum += (uint32_t)(byte - stream->leaves_out_zero) << (i * BITS);
		if (byte < FIRST_FOLLOWED)
			break;
	}
	return sum;
}

// Sign in the lowest bit.
static inline int32_t java_stream_signed(struct java_stream *stream)
{
	const uint32_t number = java_stream_unsigned(stream);

	return (int32_t)(number >> 1) ^ -(int32_t)(number & 1);
}
