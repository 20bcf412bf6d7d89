// SPDX-License-Identifier: MIT
#include "gunzip.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "error.h"
#include "memory.h"

enum { GZIP_WINDOW_BITS = 15 + 16, FIRST_ROOM = 1 << 16 };

// Cuts a size to 32 bits, in which zlib counts bytes.
static unsigned int clip(size_t size)
{
	return size < UINT32_MAX ? (unsigned int)size : UINT32_MAX;
}

struct unpacking {
	z_stream zlib;
	uint8_t *plain;
	size_t size, capacity, max;
};

// Unpacks a step. Returns zlib's status, or Z_BUF_ERROR if there is more than allowed.
static int unpack_some(struct unpacking *unpacking)
{
	z_stream *zlib = &unpacking->zlib;

	if (unpacking->size == unpacking->capacity)
		unpacking->plain = memory_grow(unpacking->plain, &unpacking->capacity,
		                               unpacking->size + FIRST_ROOM, 1);
	const unsigned int room = clip(unpacking->capacity - unpacking->size);
	zlib->next_out = unpacking->plain + unpacking->size;
	zlib->avail_out = room;
	const int status = inflate(zlib, Z_NO_FLUSH);
	unpacking->size += room - zlib->avail_out;
	return unpacking->size > unpacking->max ? Z_BUF_ERROR : status;
}

static bool begins_member(const z_stream *zlib)
{
	return zlib->avail_in >= 2 && memcmp(zlib->next_in, "\x1f\x8b", 2) == 0;
}

static int unpack(struct unpacking *unpacking)
{
	int status;

	do {
		status = unpack_some(unpacking);
		if (status == Z_STREAM_END && begins_member(&unpacking->zlib))
			status = inflateReset(&unpacking->zlib);
		else if (status == Z_OK && unpacking->zlib.avail_in == 0 &&
		         unpacking->zlib.avail_out > 0)
			status = Z_BUF_ERROR; // the file is cut off
	} while (status == Z_OK);
	return status;
}

struct error *gunzip(const char *name, const uint8_t *bytes, size_t size, size_t max, uint8_t **ret,
                     size_t *ret_size)
{
	struct unpacking unpacking = {.zlib = {.next_in = (uint8_t *)bytes, .avail_in = clip(size)},
	                              .max = max};

	if (size > UINT32_MAX || inflateInit2(&unpacking.zlib, GZIP_WINDOW_BITS) != Z_OK)
		return error_create(EXIT_STATUS_TARGET, "%s: too large to be unpacked", name);
	const int status = unpack(&unpacking);
	inflateEnd(&unpacking.zlib);
	if (status == Z_STREAM_END) {
		*ret = unpacking.plain;
		*ret_size = unpacking.size;
		return NULL;
	}
	free(unpacking.plain);
	return error_create(EXIT_STATUS_TARGET, "%s: %s", name,
	                    unpacking.size > max ? "too large when unpacked"
	                                         : "what is compressed in it is damaged or cut");
}
