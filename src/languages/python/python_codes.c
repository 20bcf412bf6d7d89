// SPDX-License-Identifier: MIT
#include "python_codes.h"

#include <stdlib.h>
#include <string.h>

#include "frame_names.h"
#include "memory.h"
#include "python.h"
#include "python_lines.h"
#include "python_pieces.h"
#include "resident.h"
#include "runtimes.h"

enum {
	MAX_CODES = 1 << 17,        // that are kept; then all are forgotten
	MAX_CHARACTERS = 256,       // of a name
	MAX_FILE_CHARACTERS = 1024, // of a path
	MAX_LINES_BYTES = 1 << 20,
	LOOK_AT_ONCE = 16,
	UTF8_BYTES = 4, // of one character
};

static uint32_t number_at(const uint8_t *bytes, uint32_t offset)
{
	uint32_t number;

	memcpy(&number, bytes + offset, sizeof(number));
	return number;
}

void python_codes_deinit(struct python_codes *codes)
{
	for (size_t i = 0; i < codes->n; i++)
		free(codes->items[i].lines);
	free(codes->items);
	hash_index_deinit(&codes->index);
	*codes = (struct python_codes){0};
}

static uint32_t name_offset(const struct python_layout *layout)
{
	return layout->code_qualname ? layout->code_qualname : layout->code_name;
}

// Positions in a key.
enum {
	KEY_FILE,
	KEY_NAME,
	KEY_LINES,
	KEY_FIRST_LINE, // and from 3.12 on the version
	KEY_CONSTS,
	KEY_NAMES,
	KEY_NAME_LENGTH, // up to 3.11, as the next ones
	KEY_NAME_HASH,
	KEY_FILE_LENGTH,
	KEY_FILE_HASH,
	KEY_TRACEABLE,
};
_Static_assert((int)KEY_TRACEABLE < PYTHON_KEY_WORDS, "room");
_Static_assert((int)LOOK_AT_ONCE <= (int)PYTHON_PIECES_AT_ONCE, "room");

static void fill_key(const struct python *python, const uint8_t *header,
                     struct python_code_seen *ret)
{
	const struct python_layout *layout = &python->layout;

	memset(ret->key, 0, sizeof(ret->key));
	ret->key[KEY_FILE] = python_word_at(header, layout->code_file);
	ret->key[KEY_NAME] = python_word_at(header, name_offset(layout));
	ret->key[KEY_LINES] = python_word_at(header, layout->code_lines);
	ret->key[KEY_FIRST_LINE] = number_at(header, layout->code_first_line);
	if (layout->code_version)
		ret->key[KEY_FIRST_LINE] |= (uint64_t)number_at(header, layout->code_version) << 32;
	if (layout->code_traceable)
		ret->key[KEY_TRACEABLE] = number_at(header, layout->code_traceable);
	if (layout->code_consts) {
		ret->key[KEY_CONSTS] = python_word_at(header, layout->code_consts);
		ret->key[KEY_NAMES] = python_word_at(header, layout->code_consts + 8);
	}
	ret->is_read = python_word_at(header, layout->object_type) == python->code_type;
}

// Length and hash of the string, which stand side by side.
static struct resident_block string_block(const struct python *python, uint64_t string,
                                          uint64_t *ret)
{
	return (struct resident_block){string + python->layout.string_length, ret, 2 * sizeof(*ret),
	                               false};
}

static bool has_same_file(const struct python_code_seen *a, const struct python_code_seen *b)
{
	return a->is_read && b->is_read && a->key[KEY_FILE] == b->key[KEY_FILE];
}

// Looks at a file's name once where several of its functions follow each other.
static void look_at_strings(const struct python *python, struct python_pieces *pieces,
                            struct python_code_seen *codes, size_t n)
{
	struct resident_block names[LOOK_AT_ONCE], files[LOOK_AT_ONCE];

	for (size_t i = 0; i < n; i++) {
		uint64_t *key = codes[i].key;
		names[i] = string_block(python, key[KEY_NAME], &key[KEY_NAME_LENGTH]);
		files[i] = string_block(python, key[KEY_FILE], &key[KEY_FILE_LENGTH]);
		if (!codes[i].is_read)
			names[i].size = 0;
		if (!codes[i].is_read || (i > 0 && has_same_file(&codes[i], &codes[i - 1])))
			files[i].size = 0;
	}
	python_pieces_read_blocks(pieces, names, n);
	python_pieces_read_blocks(pieces, files, n);
	for (size_t i = 0; i < n; i++) {
		if (codes[i].is_read && files[i].size == 0) {
			files[i].is_read = files[i - 1].is_read;
			codes[i].key[KEY_FILE_LENGTH] = codes[i - 1].key[KEY_FILE_LENGTH];
			codes[i].key[KEY_FILE_HASH] = codes[i - 1].key[KEY_FILE_HASH];
		}
		codes[i].is_read &= names[i].is_read && files[i].is_read;
	}
}

static void look_at_some(const struct python *python, struct python_pieces *pieces,
                         struct python_code_seen *codes, size_t n)
{
	uint8_t headers[LOOK_AT_ONCE][PYTHON_MAX_CODE_BYTES];
	struct resident_block blocks[LOOK_AT_ONCE];

	for (size_t i = 0; i < n; i++) {
		const size_t size = python->layout.code_bytes;
		const uint8_t *planned = python_pieces_find(pieces, codes[i].address, size);
		codes[i].is_read = false;
		if (planned)
			fill_key(python, planned, &codes[i]);
		// cppcheck-suppress legacyUninitvar ; it is what is read into
		blocks[i] = (struct resident_block){codes[i].address, headers[i],
		                                    planned ? 0 : size, false};
	}
	python_pieces_read_blocks(pieces, blocks, n);
	for (size_t i = 0; i < n; i++)
		if (blocks[i].is_read)
			fill_key(python, headers[i], &codes[i]);
	if (!python->layout.code_version)
		look_at_strings(python, pieces, codes, n);
}

void python_codes_look(const struct python *python, struct python_pieces *pieces,
                       struct python_code_seen *codes, size_t n)
{
	for (size_t i = 0; i < n; i += LOOK_AT_ONCE)
		look_at_some(python, pieces, codes + i,
		             n - i < LOOK_AT_ONCE ? n - i : LOOK_AT_ONCE);
}

void python_codes_look_at_one(const struct python *python, int tid, struct python_code_seen *code)
{
	struct python_pieces pieces = {.resident = python->setup->resident, .tid = tid};

	python_codes_look(python, &pieces, code, 1);
}

static bool is_same(const struct python_code_seen *a, const struct python_code_seen *b)
{
	return a->address == b->address && memcmp(a->key, b->key, sizeof(a->key)) == 0;
}

static size_t put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = c ? (char)c : '?';
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 7));
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

static uint32_t character_at(const uint8_t *text, unsigned int kind, size_t i)
{
	uint32_t c = 0;

	memcpy(&c, text + i * kind, kind); // little-endian
	return c;
}

// The state's bits have moved twice (Include/cpython/unicodeobject.h).
unsigned int python_codes_string_kind(uint32_t state, bool *ret_ascii)
{
	static const uint8_t shifts[] = {2, 8, 16};

	for (size_t i = 0; i < array_size(shifts); i++) {
		const uint32_t bits = state >> shifts[i];
		const unsigned int kind = bits & 7;
		const bool is_compact = bits & 8;
		*ret_ascii = bits & 16;
		if (is_compact && (kind == 1 || kind == 2 || kind == 4))
			return kind;
	}
	return 0;
}

static char *to_utf8(const uint8_t *text, unsigned int kind, size_t length)
{
	char *result = memory_alloc(length * UTF8_BYTES + 1);
	size_t n = 0;

	for (size_t i = 0; i < length; i++)
		n += put_utf8(result + n, character_at(text, kind, i));
	result[n] = '\0';
	return result;
}

char *python_codes_text(const struct python *python, const uint8_t *object, size_t size)
{
	const struct python_layout *layout = &python->layout;
	bool is_ascii;

	if (python_word_at(object, layout->object_type) != python->string_type)
		return NULL;
	const unsigned int kind =
	    python_codes_string_kind(number_at(object, layout->string_state), &is_ascii);
	const uint32_t at = is_ascii ? layout->string_ascii : layout->string_compact;
	const uint64_t length = python_word_at(object, layout->string_length);
	if (kind == 0 || at >= size)
		return NULL;
	const size_t room = (size - at) / kind;
	return to_utf8(object + at, kind, length < room ? length : room);
}

// The string's text as UTF-8; NULL: it is none. The caller frees.
static char *read_string(const struct python *python, int tid, uint64_t address,
                         size_t max_characters)
{
	const struct python_layout *layout = &python->layout;
	uint8_t header[128], text[4 * MAX_FILE_CHARACTERS];
	struct resident *resident = python->setup->resident;
	bool is_ascii;

	if (!resident_read(resident, tid, address, header, layout->string_compact) ||
	    python_word_at(header, layout->object_type) != python->string_type)
		return NULL;
	const unsigned int kind =
	    python_codes_string_kind(number_at(header, layout->string_state), &is_ascii);
	uint64_t length = python_word_at(header, layout->string_length);
	if (kind == 0)
		return NULL;
	if (length > max_characters)
		length = max_characters;
	const uint32_t at = is_ascii ? layout->string_ascii : layout->string_compact;
	if (length && !resident_read(resident, tid, address + at, text, length * kind))
		return NULL;
	return to_utf8(text, kind, length);
}

static void read_lines(const struct python *python, int tid, struct python_code *code)
{
	const struct python_layout *layout = &python->layout;
	struct resident *resident = python->setup->resident;
	const uint64_t table = code->seen.key[KEY_LINES];
	uint64_t size;

	if (!resident_read(resident, tid, table + layout->bytes_size, &size, sizeof(size)) ||
	    size == 0 || size > MAX_LINES_BYTES)
		return;
	code->lines = memory_alloc(size);
	code->lines_bytes = size;
	if (!resident_read(resident, tid, table + layout->bytes_data, code->lines, size))
		code->lines_bytes = 0;
}

// Reads what the code object consists of. The object itself is read again afterwards: if it is
// still the one that was seen, so are they.
static bool read_code(struct python *python, int tid, struct python_code *code)
{
	const struct python_layout *layout = &python->layout;
	struct python_code_seen again = {.address = code->seen.address};

	_cleanup_free_ char *name =
	    read_string(python, tid, code->seen.key[KEY_NAME], MAX_CHARACTERS);
	_cleanup_free_ char *file =
	    name ? read_string(python, tid, code->seen.key[KEY_FILE], MAX_FILE_CHARACTERS) : NULL;
	if (!file)
		return false;
	read_lines(python, tid, code);
	python_codes_look_at_one(python, tid, &again);
	if (!again.is_read || !is_same(&again, &code->seen))
		return false;
	code->first_line = (uint32_t)code->seen.key[KEY_FIRST_LINE];
	code->traceable =
	    layout->code_traceable ? 2 * (int64_t)(int32_t)code->seen.key[KEY_TRACEABLE] : 0;
	code->start = code->seen.address + layout->code_start;
	code->function = frame_names_add(python->codes.names, name, file, code->first_line);
	return true;
}

static bool code_equal(const void *context, uint32_t id, const void *key)
{
	const struct python_codes *codes = context;

	return codes->items[id].seen.address == *(const uint64_t *)key;
}

static void forget_all(struct python_codes *codes)
{
	for (size_t i = 0; i < codes->n; i++)
		free(codes->items[i].lines);
	codes->n = 0;
	hash_index_clear(&codes->index);
}

const struct python_code *python_codes_get(struct python *python, int tid,
                                           const struct python_code_seen *seen)
{
	struct python_codes *codes = &python->codes;
	const uint64_t hash = hash_mix(seen->address, 0);

	if (!seen->is_read)
		return NULL;
	uint32_t id = hash_index_find(&codes->index, hash, code_equal, codes, &seen->address);
	if (id != HASH_NONE && is_same(&codes->items[id].seen, seen))
		return &codes->items[id];
	struct python_code code = {.seen = *seen};
	if (!read_code(python, tid, &code)) {
		free(code.lines);
		return NULL;
	}
	if (id == HASH_NONE) {
		if (codes->n == MAX_CODES)
			forget_all(codes);
		id = codes->n;
		*array_push(codes->items, codes->n, codes->capacity) = code;
		hash_index_insert(&codes->index, hash, id);
	} else {
		free(codes->items[id].lines);
		codes->items[id] = code;
	}
	return &codes->items[id];
}

bool python_codes_find_place(const struct python *python, int tid, const struct python_frame *frame,
                             const struct python_code *code, int64_t *ret)
{
	uint64_t start = code->start, table, copy;

	if (python->layout.minor <= 10) {
		*ret = (int64_t)frame->instr;
		return true;
	}
	if (frame->tlbc && python->layout.code_tlbc) {
		if (!resident_read(python->setup->resident, tid,
		                   code->seen.address + python->layout.code_tlbc, &table,
		                   sizeof(table)) ||
		    !resident_read(python->setup->resident, tid,
		                   table + 8 + 8 * (uint64_t)frame->tlbc, &copy, sizeof(copy)) ||
		    !copy)
			return false;
		start = copy;
	}
	*ret = (int64_t)(frame->instr - start);
	return true;
}

uint32_t python_codes_line(const struct python *python, const struct python_code *code, int64_t at)
{
	const uint32_t line = code->lines_bytes
	                          ? python_lines_find(python->layout.minor, code->lines,
	                                              code->lines_bytes, code->first_line, at)
	                          : 0;

	return line ? line : code->first_line;
}
