// SPDX-License-Identifier: MIT
#include "gzip.h"

#include "error.h"

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
