// SPDX-License-Identifier: MIT
// gzip: compresses a stream in front of a FILE; unpacks a gzip file (RFC 1952).
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

struct error;

enum { GZIP_BUFFER_BYTES = 64 * 1024 };

struct gzip {
	z_stream zlib;
	FILE *stream; // borrowed; its errors stay in its error indicator
	unsigned char buffer[GZIP_BUFFER_BYTES];
};

// Prepares for writing to `stream`; on success gzip_deinit must follow.
struct error *gzip_init(struct gzip *gzip, FILE *stream);
void gzip_deinit(struct gzip *gzip);

void gzip_write(struct gzip *gzip, const void *bytes, size_t size);

// Does the same for bytes most of which are the same as the one before: looks for nothing else,
// which is quicker and finds no less.
void gzip_write_runs(struct gzip *gzip, const void *bytes, size_t size);

// Writes out what is held back, and the trailer. The FILE is not flushed.
void gzip_finish(struct gzip *gzip);

// Unpacks a file of one member or more: at most `max` bytes, into *ret, owned by the caller.
// Returns an error if the file is damaged, cut off or larger; `name` is the file's, for the
// message. Bytes after the last member that do not begin another one are ignored.
struct error *gunzip(const char *name, const uint8_t *bytes, size_t size, size_t max, uint8_t **ret,
                     size_t *ret_size);
