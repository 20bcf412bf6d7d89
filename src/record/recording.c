// SPDX-License-Identifier: MIT
#include "recording.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "blocked_leaf.h"
#include "clock.h"
#include "error.h"
#include "input_file.h"
#include "local_files.h"
#include "memory.h"
#include "record.h"
#include "record_copy.h"
#include "record_reader.h"

enum {
	CHECKED_FACTOR = 4,       // a file is read as many times over to find whole blocks
	STACK_ROOM_FACTOR = 64,   // frames for each byte of the file...
	MIN_STACK_ROOM = 1 << 20, // ...and
	MAX_STACK_ROOM = 1 << 28,
};

// What is not read yet of a recording that comes as a stream.
struct record_stream {
	struct record_reader reader;
	uint8_t *bytes;
	size_t size, capacity;
	bool has_header, has_started;
};

#define DEFAULT_PERIOD_NS (NS_PER_SECOND / 99)

bool recording_is(const void *bytes, size_t size)
{
	return size >= RECORD_MAGIC_BYTES && memcmp(bytes, RECORD_MAGIC, RECORD_MAGIC_BYTES) == 0;
}

static uint32_t get_le32(const uint8_t *from)
{
	return from[0] | from[1] << 8 | from[2] << 16 | (uint32_t)from[3] << 24;
}

static bool has_its_sum(const uint8_t *header, size_t length)
{
	const uint32_t sum =
	    crc32(crc32(0, header + 12, 4), header + RECORD_BLOCK_HEADER_BYTES, length);

	return sum == get_le32(header + 8);
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
	return has_its_sum(header, length) ? length : 0;
}

// Reads the block, which is whole.
static void read_block(struct record_reader *reader, const uint8_t *header, size_t length)
{
	const uint32_t number = get_le32(header + 12);

	if (number > reader->next_block)
		reader->recording->lost_blocks += number - reader->next_block;
	reader->next_block = (uint64_t)number + 1;
	record_reader_block(reader, header + RECORD_BLOCK_HEADER_BYTES, length);
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
		read_block(reader, recording->bytes + at, length);
		at += RECORD_BLOCK_HEADER_BYTES + length;
	}
}

static void complete_symbols(struct recording *recording)
{
	struct symbols *symbols = &recording->symbols;

	symbols_fit(symbols, recording->profile.n_locations);
	symbols->n_unnamed = 0;
	for (size_t i = 0; i < symbols->n_locations; i++)
		symbols->n_unnamed += symbols->locations[i].count == 0;
	if (recording->has_symbols)
		blocked_leaf_shorten(&recording->profile, &recording->modules, symbols);
}

// No more blocks come.
static void end_reading(struct recording *recording, struct record_reader *reader)
{
	if (!recording->whole || recording->full)
		record_reader_prolong(reader);
	profile_end_spans(&recording->profile);
	recording->profile.duration_ns = reader->last_ns;
	complete_symbols(recording);
	if (recording->copy)
		record_copy_take_numbers(recording->copy, &reader->modules, &reader->locations);
	record_reader_deinit(reader);
}

void recording_replay(struct recording *recording)
{
	struct record_reader reader;

	record_reader_init(&reader, recording);
	read_blocks(&reader, RECORD_HEADER_BYTES);
	end_reading(recording, &reader);
}

void recording_find_names(struct recording *recording, const char *root,
                          const struct symbolize_options *options)
{
	if (recording->has_symbols)
		return;
	symbols_deinit(&recording->symbols);
	local_files_find(&recording->modules, root);
	symbolize(&recording->profile, &recording->modules, options, &recording->symbols);
}

void recording_begin_stream(struct recording *ret)
{
	*ret = (struct recording){
	    .profile.max_location_ids = MAX_STACK_ROOM,
	    .profile.period_ns = DEFAULT_PERIOD_NS,
	    .stream = memory_alloc_zeroed(1, sizeof(*ret->stream)),
	    .clock_offset_ns = clock_offset_ns(),
	};
	record_reader_init(&ret->stream->reader, ret);
}

// Reads a whole block of a stream; of the first one the start before all else.
static void read_next_block(struct recording *recording, const uint8_t *bytes, size_t length)
{
	struct record_stream *stream = recording->stream;

	if (!stream->has_started && recording->started) {
		record_reader_start(&stream->reader, bytes + RECORD_BLOCK_HEADER_BYTES, length);
		recording->started(recording->context);
	}
	stream->has_started = true;
	read_block(&stream->reader, bytes, length);
}

// Reads what stands whole at the start of the bytes: how many those are; 0: nothing yet. False: it
// is no recording.
static bool read_next(struct recording *recording, const uint8_t *bytes, size_t size, size_t *ret)
{
	struct record_stream *stream = recording->stream;

	*ret = 0;
	if (size < RECORD_HEADER_BYTES) // as a block's header
		return true;
	if (!stream->has_header) {
		stream->has_header = recording_is(bytes, size) &&
		                     get_le32(bytes + RECORD_MAGIC_BYTES) == RECORD_VERSION;
		*ret = RECORD_HEADER_BYTES;
		if (recording->copy && stream->has_header)
			record_copy_add(recording->copy, bytes, *ret);
		return stream->has_header;
	}
	const size_t length = get_le32(bytes + 4);
	if (get_le32(bytes) != RECORD_BLOCK_MARK || length > RECORD_MAX_BLOCK_BYTES)
		return false;
	if (size < RECORD_BLOCK_HEADER_BYTES + length)
		return true;
	if (!has_its_sum(bytes, length))
		return false;
	read_next_block(recording, bytes, length);
	*ret = RECORD_BLOCK_HEADER_BYTES + length;
	if (recording->copy && !recording->whole) // names come before its end
		record_copy_add(recording->copy, bytes, *ret);
	return true;
}

bool recording_feed(struct recording *recording, const void *bytes, size_t size)
{
	struct record_stream *stream = recording->stream;
	size_t at = 0, n = 0;
	bool good = true;

	stream->bytes = memory_grow(stream->bytes, &stream->capacity, stream->size + size, 1);
	memcpy(stream->bytes + stream->size, bytes, size);
	stream->size += size;
	recording->size += size; // what numbers in it may be
	while (good) {
		good = read_next(recording, stream->bytes + at, stream->size - at, &n);
		if (n == 0)
			break;
		at += n;
	}
	memmove(stream->bytes, stream->bytes + at, stream->size - at);
	stream->size -= at;
	record_reader_give_files(&stream->reader);
	symbols_fit(&recording->symbols, recording->profile.n_locations);
	return good;
}

void recording_take_files(struct recording *recording, int socket)
{
	taken_files_receive(&recording->files, socket);
}

int64_t recording_now_ns(const struct recording *recording)
{
	return recording->stream->reader.last_ns;
}

void recording_follow_clock(struct recording *recording)
{
	const int64_t step_ns = clock_step_ns(recording->clock_offset_ns);

	recording->clock_offset_ns += step_ns;
	recording->profile.start_time_ns += step_ns;
}

static void free_stream(struct recording *recording)
{
	if (recording->stream)
		free(recording->stream->bytes);
	free(take_pointer(recording->stream));
}

void recording_end_stream(struct recording *recording)
{
	recording->lost_bytes += recording->stream->size;
	end_reading(recording, &recording->stream->reader);
	free_stream(recording);
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
	if (size < RECORD_HEADER_BYTES || !recording_is(bytes, size)) {
		recording_deinit(ret);
		return error_create(
		    EXIT_STATUS_TARGET,
		    "%s is not a recording (FILE.wprof); for other profiles: profiler view", name);
	}
	const uint32_t version = get_le32(bytes + RECORD_MAGIC_BYTES);
	if (version != RECORD_VERSION) {
		recording_deinit(ret);
		return error_create(EXIT_STATUS_TARGET,
		                    "%s is a recording of version %u, and this profiler reads "
		                    "version %d: use the profiler that wrote it",
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
	if (recording->stream)
		record_reader_deinit(&recording->stream->reader);
	free_stream(recording);
	taken_files_deinit(&recording->files);
	profile_deinit(&recording->profile);
	modules_deinit(&recording->modules);
	symbols_deinit(&recording->symbols);
	cpu_log_deinit(&recording->cpu_log);
	free(recording->host);
	free(recording->version);
	free(recording->comment);
	free(recording->bytes);
	*recording = (struct recording){0};
}
