#include "recording.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "clock.h"
#include "error.h"
#include "input_file.h"
#include "memory.h"
#include "record.h"
#include "record_reader.h"

enum {
	CHECKED_FACTOR = 4,       // a file is read as many times over to find whole blocks
	STACK_ROOM_FACTOR = 64,   // frames for each byte of the file...
	MIN_STACK_ROOM = 1 << 20, // ...and
	MAX_STACK_ROOM = 1 << 28,
};

#define DEFAULT_PERIOD_NS (NS_PER_SECOND / 99)

static uint32_t get_le32(const uint8_t *from)
{
	return from[0] | from[1] << 8 | from[2] << 16 | (uint32_t)from[3] << 24;
}

// The length of the records of the whole block at `at`; 0: there is none.
static size_t whole_block(struct record_reader *reader, size_t at)
{
	const struct recording *recording = reader->recording;
	const uint8_t *header = recording->bytes + at;
	const size_t left = recording->size - at;

	if (left <= RECORD_BLOCK_HEADER_BYTES || get_le32(header) != RECORD_BLOCK_MARK)
		return 0;
	const size_t length = get_le32(header + 4);
	if (length > left - RECORD_BLOCK_HEADER_BYTES || length > RECORD_MAX_BLOCK_BYTES)
		return 0;
	// Marks that were made up could have it check the same bytes over and over.
	reader->checked_bytes += length;
	if (reader->checked_bytes > CHECKED_FACTOR * (uint64_t)recording->size)
		return 0;
	const uint32_t sum =
	    crc32(crc32(0, header + 12, 4), header + RECORD_BLOCK_HEADER_BYTES, length);
	return sum == get_le32(header + 8) ? length : 0;
}

static void read_blocks(struct record_reader *reader, size_t at)
{
	struct recording *recording = reader->recording;

	while (at < recording->size) {
		const size_t length = whole_block(reader, at);
		if (length == 0) {
			recording->lost_bytes++;
			at++;
			continue;
		}
		const uint8_t *header = recording->bytes + at;
		const uint32_t number = get_le32(header + 12);
		if (number > reader->next_block)
			recording->lost_blocks += number - reader->next_block;
		reader->next_block = (uint64_t)number + 1;
		record_reader_block(reader, header + RECORD_BLOCK_HEADER_BYTES, length);
		at += RECORD_BLOCK_HEADER_BYTES + length;
	}
}

void recording_fit_symbols(struct recording *recording)
{
	struct symbols *symbols = &recording->symbols;
	const size_t n = recording->profile.n_locations;

	symbols->locations = memory_grow(symbols->locations, &recording->locations_capacity, n + 1,
	                                 sizeof(*symbols->locations));
	while (symbols->n_locations < n)
		symbols->locations[symbols->n_locations++] = (struct location_lines){0};
}

static void complete_symbols(struct recording *recording)
{
	struct symbols *symbols = &recording->symbols;

	recording_fit_symbols(recording);
	symbols->n_unnamed = 0;
	for (size_t i = 0; i < symbols->n_locations; i++)
		symbols->n_unnamed += symbols->locations[i].count == 0;
}

void recording_replay(struct recording *recording)
{
	struct record_reader reader;

	record_reader_init(&reader, recording);
	read_blocks(&reader, RECORD_HEADER_BYTES);
	if (!recording->whole || recording->full)
		record_reader_prolong(&reader);
	profile_end_spans(&recording->profile);
	recording->profile.duration_ns = reader.last_ns;
	complete_symbols(recording);
	record_reader_deinit(&reader);
}

// What the first block says of the start: it is what slices are counted from.
static void read_ahead(struct recording *recording)
{
	struct record_reader reader;

	record_reader_init(&reader, recording);
	recording->profile.period_ns = DEFAULT_PERIOD_NS;
	const size_t length =
	    recording->size > RECORD_HEADER_BYTES ? whole_block(&reader, RECORD_HEADER_BYTES) : 0;
	if (length > 0)
		record_reader_start(
		    &reader, recording->bytes + RECORD_HEADER_BYTES + RECORD_BLOCK_HEADER_BYTES,
		    length);
	record_reader_deinit(&reader);
}

struct error *recording_open_bytes(const char *name, uint8_t *bytes, size_t size,
                                   struct recording *ret)
{
	*ret = (struct recording){.bytes = bytes, .size = size};
	if (size < RECORD_HEADER_BYTES || memcmp(bytes, RECORD_MAGIC, RECORD_MAGIC_BYTES) != 0) {
		recording_deinit(ret);
		return error_create(EXIT_STATUS_TARGET,
		                    "%s is no recording: make one with "
		                    "profiler -f record",
		                    name);
	}
	const uint32_t version = get_le32(bytes + RECORD_MAGIC_BYTES);
	if (version != RECORD_VERSION) {
		recording_deinit(ret);
		return error_create(EXIT_STATUS_TARGET,
		                    "%s is a recording of version %u, and this profiler reads "
		                    "version %d: use the one that made it",
		                    name, version, RECORD_VERSION);
	}
	const size_t room = size * STACK_ROOM_FACTOR;
	ret->profile.max_location_ids = room < MIN_STACK_ROOM   ? MIN_STACK_ROOM
	                                : room > MAX_STACK_ROOM ? MAX_STACK_ROOM
	                                                        : room;
	read_ahead(ret);
	return NULL;
}

struct error *recording_open(const char *path, struct recording *ret)
{
	uint8_t *bytes;
	size_t size;

	struct error *error = input_file_read(path, &bytes, &size);
	return error ? error : recording_open_bytes(input_file_name(path), bytes, size, ret);
}

void recording_deinit(struct recording *recording)
{
	profile_deinit(&recording->profile);
	modules_deinit(&recording->modules);
	symbols_deinit(&recording->symbols);
	free(recording->host);
	free(recording->version);
	free(recording->comment);
	free(recording->bytes);
	*recording = (struct recording){0};
}
