// SPDX-License-Identifier: MIT
#include "gzip.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "error.h"
#include "memory.h"

enum {
	WINDOW_BITS = 15 + 16,    // the largest window; + 16 asks zlib for a gzip header
	MEMORY_LEVEL = 8,         // zlib's default
	MAX_STEP_BYTES = 1 << 30, // avail_in is an unsigned int
};

struct error *gzip_init(struct gzip *gzip, FILE *stream)
{
	gzip->zlib = (z_stream){0};
	gzip->stream = stream;
	if (deflateInit2(&gzip->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
	                 Z_DEFAULT_STRATEGY) != Z_OK)
		return error_create(EXIT_STATUS_OUTPUT, "cannot start zlib: %s",
		                    gzip->zlib.msg ? gzip->zlib.msg : "out of memory");
	return NULL;
}

void gzip_deinit(struct gzip *gzip)
{
	deflateEnd(&gzip->zlib);
}

// Compresses all of the input. deflate cannot fail while the output has room; room that it leaves
// means that it has nothing more.
static void deflate_all(struct gzip *gzip, int flush)
{
	do {
		gzip->zlib.next_out = gzip->buffer;
		gzip->zlib.avail_out = GZIP_BUFFER_BYTES;
		deflate(&gzip->zlib, flush);
		fwrite(gzip->buffer, 1, GZIP_BUFFER_BYTES - gzip->zlib.avail_out, gzip->stream);
	} while (gzip->zlib.avail_out == 0 && !ferror(gzip->stream));
}

void gzip_write(struct gzip *gzip, const void *bytes, size_t size)
{
	const unsigned char *next = bytes;

	while (size > 0 && !ferror(gzip->stream)) {
		const size_t step = size < MAX_STEP_BYTES ? size : MAX_STEP_BYTES;
		gzip->zlib.next_in = (unsigned char *)next;
		gzip->zlib.avail_in = step;
		deflate_all(gzip, Z_NO_FLUSH);
		next += step;
		size -= step;
	}
}

// What was written before is compressed as before, which may need more room than there is.
static void set_strategy(struct gzip *gzip, int strategy)
{
	int status;

	gzip->zlib.avail_in = 0;
	do {
		gzip->zlib.next_out = gzip->buffer;
		gzip->zlib.avail_out = GZIP_BUFFER_BYTES;
		status = deflateParams(&gzip->zlib, Z_DEFAULT_COMPRESSION, strategy);
		fwrite(gzip->buffer, 1, GZIP_BUFFER_BYTES - gzip->zlib.avail_out, gzip->stream);
	} while (status == Z_BUF_ERROR && !ferror(gzip->stream));
}

void gzip_write_runs(struct gzip *gzip, const void *bytes, size_t size)
{
	set_strategy(gzip, Z_RLE);
	gzip_write(gzip, bytes, size);
	set_strategy(gzip, Z_DEFAULT_STRATEGY);
}

void gzip_finish(struct gzip *gzip)
{
	gzip->zlib.next_in = NULL;
	gzip->zlib.avail_in = 0;
	deflate_all(gzip, Z_FINISH);
}

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
