// SPDX-License-Identifier: MIT
#include "v8_string.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum {
	MAX_PARTS = 1 << 12, // of a string that was put together
	MAX_DEPTH = 64,
	MAX_SOURCE = V8_MAX_CHARACTERS / 2,
	MAX_SOURCE_LINES = 1 << 20,
	CHUNK = 4096, // characters that are read at once
	KIND = 7,     // in an instance type: how the string is represented
	SEQUENTIAL = 0,
	CONS = 1,
	EXTERNAL = 2,
	SLICED = 3,
	THIN = 5,
	ONE_BYTE = 8,  // Latin-1, else UTF-16
	UNCACHED = 16, // of EXTERNAL: where its characters are is not in the string
};

// Takes the next characters. False: it needs no more.
typedef bool take_characters(void *context, const uint16_t *characters, size_t n);

struct reading {
	const struct v8_memory *memory;
	take_characters *take;
	void *context;
	size_t n_parts;
	bool is_done;
};

struct string {
	int32_t type;
	uint32_t length;
	uint64_t data, second;
};

static bool read_head(const struct v8_memory *memory, uint64_t value, struct string *ret)
{
	uint8_t bytes[V8_STRING_SECOND + sizeof(uint64_t)] = {0};
	uint64_t map;

	if (!v8_read_object(memory, value, bytes, V8_STRING_DATA))
		return false;
	memcpy(&map, bytes, sizeof(map));
	ret->type = v8_map_type(memory, map);
	if (ret->type < 0 || ret->type >= 128)
		return false;
	// A short string may be the last object before memory that is not there.
	const bool has_fields = (ret->type & KIND) != SEQUENTIAL;
	if (has_fields &&
	    !v8_read_object(memory, value, bytes,
	                    (ret->type & KIND) == THIN ? V8_STRING_SECOND : sizeof(bytes)))
		return false;
	memcpy(&ret->length, bytes + V8_STRING_LENGTH, sizeof(ret->length));
	memcpy(&ret->data, bytes + V8_STRING_DATA, sizeof(ret->data));
	memcpy(&ret->second, bytes + V8_STRING_SECOND, sizeof(ret->second));
	return true;
}

static bool read_characters(struct reading *reading, uint64_t address, bool is_one_byte, size_t n)
{
	uint16_t characters[CHUNK];
	uint8_t bytes[CHUNK];

	size_t *left = reading->memory->n_left;

	for (size_t i = 0, count; i < n && !reading->is_done; i += count) {
		count = n - i < CHUNK ? n - i : CHUNK;
		if (*left < count) {
			*left = 0;
			return false;
		}
		*left -= count;
		if (is_one_byte) {
			if (!v8_read(reading->memory, address + i, bytes, count))
				return false;
			for (size_t j = 0; j < count; j++)
				characters[j] = bytes[j];
		} else if (!v8_read(reading->memory, address + 2 * i, characters, 2 * count)) {
			return false;
		}
		reading->is_done = !reading->take(reading->context, characters, count);
	}
	return true;
}

// Reads `n` characters of the string from `first` on.
static bool read_part(struct reading *reading, uint64_t value, size_t first, size_t n, int depth)
{
	struct string string;

	for (; depth < MAX_DEPTH; depth++) {
		if (n == 0 || reading->is_done)
			return true;
		if (reading->n_parts++ == MAX_PARTS ||
		    !read_head(reading->memory, value, &string) || first > string.length ||
		    n > string.length - first)
			return false;
		const bool is_one_byte = string.type & ONE_BYTE;
		const size_t bytes = is_one_byte ? 1 : 2;
		switch (string.type & KIND) {
		case SEQUENTIAL:
			return read_characters(reading, value - 1 + V8_STRING_DATA + first * bytes,
			                       is_one_byte, n);
		case EXTERNAL:
			return !(string.type & UNCACHED) &&
			       read_characters(reading, string.second + first * bytes, is_one_byte,
			                       n);
		case THIN:
			value = string.data;
			break;
		case SLICED:
			first += (uint32_t)v8_smi(string.second);
			value = string.data;
			break;
		case CONS: {
			struct string left;
			if (!read_head(reading->memory, string.data, &left) ||
			    left.length > string.length)
				return false;
			if (first < left.length) {
				const size_t most = left.length - first;
				const size_t count = n < most ? n : most;
				if (!read_part(reading, string.data, first, count, depth + 1))
					return false;
				first += count;
				n -= count;
			}
			first -= left.length;
			value = string.second;
			break;
		}
		default:
			return false;
		}
	}
	return false;
}

struct text {
	char *bytes;
	size_t n, size;
	uint32_t high; // the first half of a pair; 0: none
};

static bool add_bytes(struct text *text, const char *bytes, size_t n)
{
	if (text->size - text->n <= n)
		return false;
	memcpy(text->bytes + text->n, bytes, n);
	text->n += n;
	return true;
}

static bool add_code_point(struct text *text, uint32_t c)
{
	const char low = (char)(0x80 | (c & 0x3f));
	const char middle = (char)(0x80 | (c >> 6 & 0x3f));

	if (c < 0x80)
		return add_bytes(text, (const char[]){(char)c}, 1);
	if (c < 0x800)
		return add_bytes(text, (const char[]){(char)(0xc0 | c >> 6), low}, 2);
	if (c < 0x10000)
		return add_bytes(text, (const char[]){(char)(0xe0 | c >> 12), middle, low}, 3);
	return add_bytes(
	    text,
	    (const char[]){(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 0x3f)), middle, low},
	    4);
}

// Halves of a pair that have lost the other one are replaced; a NUL ends no name here.
static bool add_unit(struct text *text, uint16_t unit)
{
	const uint32_t replacement = 0xfffd;
	const bool is_high = unit >= 0xd800 && unit < 0xdc00;
	const bool is_low = unit >= 0xdc00 && unit < 0xe000;
	const uint32_t high = text->high;

	text->high = is_high ? unit : 0;
	if (high && is_low)
		return add_code_point(text, 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00u));
	if (high && !add_code_point(text, replacement))
		return false;
	if (is_high)
		return true;
	return add_code_point(text, is_low || unit == 0 ? replacement : unit);
}

static bool take_text(void *context, const uint16_t *characters, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!add_unit(context, characters[i]))
			return false;
	return true;
}

bool v8_string_read(const struct v8_memory *memory, uint64_t value, char *ret, size_t size)
{
	struct text text = {.bytes = ret, .size = size};
	struct reading reading = {.memory = memory, .take = take_text, .context = &text};
	struct string string;

	if (!read_head(memory, value, &string))
		return false;
	const size_t n = string.length < size ? string.length : size;
	if (!read_part(&reading, value, 0, n, 0))
		return false;
	ret[text.n] = '\0';
	return true;
}

struct line_search {
	struct v8_lines *lines;
	uint32_t at;
	uint16_t last;
};

static bool take_lines(void *context, const uint16_t *characters, size_t n)
{
	struct line_search *search = context;
	struct v8_lines *lines = search->lines;

	if (lines->n >= MAX_SOURCE_LINES)
		return false;
	for (size_t i = 0; i < n; i++, search->at++) {
		const uint16_t c = characters[i];
		const bool ends_here = c == '\n' || c == 0x2028 || c == 0x2029;
		if (search->last == '\r' && c != '\n')
			*array_push(lines->ends, lines->n, lines->capacity) = search->at - 1;
		if (ends_here)
			*array_push(lines->ends, lines->n, lines->capacity) = search->at;
		search->last = c;
	}
	return true;
}

bool v8_string_lines(const struct v8_memory *memory, uint64_t value, struct v8_lines *ret)
{
	struct line_search search = {.lines = ret};
	struct reading reading = {.memory = memory, .take = take_lines, .context = &search};
	struct string string;

	*ret = (struct v8_lines){0};
	if (read_head(memory, value, &string) && string.length <= MAX_SOURCE &&
	    read_part(&reading, value, 0, string.length, 0) && !reading.is_done) {
		if (!ret->ends)
			ret->ends = memory_alloc(sizeof(*ret->ends)); // all is one line
		return true;
	}
	free(ret->ends);
	*ret = (struct v8_lines){0};
	return false;
}
