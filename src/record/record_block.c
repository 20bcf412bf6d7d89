// SPDX-License-Identifier: MIT
#include "record_block.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "memory.h"

void record_put_signed(struct protobuf *buffer, int64_t value)
{
	protobuf_varint(buffer, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

void record_put_bytes(struct protobuf *buffer, const void *bytes, size_t size)
{
	buffer->bytes = memory_grow(buffer->bytes, &buffer->capacity, buffer->size + size, 1);
	if (size)
		memcpy(buffer->bytes + buffer->size, bytes, size);
	buffer->size += size;
}

void record_put_text(struct protobuf *buffer, const char *text)
{
	const size_t length = strlen(text);

	protobuf_varint(buffer, length);
	record_put_bytes(buffer, text, length);
}

void record_put(struct protobuf *to, enum record_type type, struct protobuf *from)
{
	protobuf_varint(to, type);
	protobuf_varint(to, from->size);
	record_put_bytes(to, from->bytes, from->size);
	protobuf_clear(from);
}

bool record_write_pending(struct record_file *file)
{
	struct protobuf *pending = &file->pending;
	size_t *done = &file->n_written;

	while (*done < pending->size && !file->failed) {
		const ssize_t n = write(file->fd, pending->bytes + *done, pending->size - *done);
		if (n >= 0)
			*done += (size_t)n;
		else if (errno == EAGAIN)
			break;
		else if (errno != EINTR)
			file->failed = true;
	}
	if (*done < pending->size / 2) // each byte is moved only once or twice
		return !file->failed;
	pending->size -= *done;
	if (pending->size > 0)
		memmove(pending->bytes, pending->bytes + *done, pending->size);
	*done = 0;
	return !file->failed;
}

static void put_le32(uint8_t *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = value >> 8 * i;
}

static bool write_added(struct record_file *file, size_t size)
{
	file->written_bytes += size;
	return record_write_pending(file);
}

bool record_write_header(struct record_file *file)
{
	uint8_t header[RECORD_HEADER_BYTES] = RECORD_MAGIC;

	put_le32(header + RECORD_MAGIC_BYTES, RECORD_VERSION);
	record_put_bytes(&file->pending, header, sizeof(header));
	return write_added(file, sizeof(header));
}

void record_put_block(struct protobuf *to, uint32_t number, struct protobuf *records)
{
	uint8_t header[RECORD_BLOCK_HEADER_BYTES];

	put_le32(header, RECORD_BLOCK_MARK);
	put_le32(header + 4, records->size);
	put_le32(header + 12, number);
	// Of the number and the records.
	put_le32(header + 8, crc32(crc32(0, header + 12, 4), records->bytes, records->size));
	record_put_bytes(to, header, sizeof(header));
	record_put_bytes(to, records->bytes, records->size);
	protobuf_clear(records);
}

bool record_write_block(struct record_file *file, struct protobuf *records)
{
	const size_t size = RECORD_BLOCK_HEADER_BYTES + records->size;

	if (file->failed)
		return false;
	if (records->size == 0)
		return true;
	record_put_block(&file->pending, file->n_blocks++, records);
	return write_added(file, size);
}
