// SPDX-License-Identifier: MIT
// What the fuzzers of recordings share: an input is a recording whose blocks' checksums are put
// right, so that what is fuzzed lies behind them.
#pragma once

#include <zlib.h>

#include "error.h"
#include "fuzz.h"
#include "memory.h"
#include "record.h"
#include "recording.h"

static inline uint32_t record_input_le32(const uint8_t *from)
{
	return from[0] | from[1] << 8 | from[2] << 16 | (uint32_t)from[3] << 24;
}

static inline void record_input_mend(uint8_t *bytes, size_t size)
{
	for (size_t at = RECORD_HEADER_BYTES; at + RECORD_BLOCK_HEADER_BYTES < size;) {
		uint8_t *header = bytes + at;
		const size_t length = record_input_le32(header + 4);
		if (record_input_le32(header) != RECORD_BLOCK_MARK ||
		    length > size - at - RECORD_BLOCK_HEADER_BYTES)
			return;
		const uint32_t sum =
		    crc32(crc32(0, header + 12, 4), header + RECORD_BLOCK_HEADER_BYTES, length);
		for (int i = 0; i < 4; i++)
			header[8 + i] = sum >> 8 * i;
		at += RECORD_BLOCK_HEADER_BYTES + length;
	}
}

// False: it is no recording at all. Else the caller deinits *ret.
static inline bool record_input_open(const uint8_t *data, size_t size, struct recording *ret)
{
	uint8_t *bytes = memory_alloc(size);

	if (size)
		memcpy(bytes, data, size);
	record_input_mend(bytes, size);
	_cleanup_error_ struct error *error = recording_open_bytes("input", bytes, size, ret);
	return !error;
}
