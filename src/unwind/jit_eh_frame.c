// SPDX-License-Identifier: MIT
#include "jit_eh_frame.h"

#include <stdbool.h>
#include <string.h>

enum {
	MAX_AUGMENTATION = 8, // letters; there are five
	MAX_LEB128_BYTES = 10,
};

// Encodings of pointers (LSB core, 10.5.1): their size, and what they are relative to.
enum {
	ABSPTR = 0x00,
	UDATA4 = 0x03,
	UDATA8 = 0x04,
	SDATA4 = 0x0b,
	SDATA8 = 0x0c,
	SIZE_MASK = 0x0f,
	PCREL = 0x10,
	TEXTREL = 0x20,
	KIND_MASK = 0x70,
};

// An entry: its length (4 bytes), an id (4 bytes: 0 for a CIE, else how far back its CIE lies), and
// the rest (DWARF 5, 6.4.1; LSB core, 10.6.1).
struct entry {
	size_t at, id_at, end;
	uint32_t id;
};

static bool read_word(const struct jit_eh_frame *frame, size_t at, uint32_t *ret)
{
	if (at > frame->size || sizeof(*ret) > frame->size - at)
		return false;
	memcpy(ret, frame->bytes + at, sizeof(*ret));
	return true;
}

static bool read_entry(const struct jit_eh_frame *frame, size_t at, struct entry *ret)
{
	uint32_t length;

	*ret = (struct entry){.at = at, .id_at = at + sizeof(length)};
	// 0 ends the table; UINT32_MAX marks the 64-bit format, which JIT compilers do not need.
	if (!read_word(frame, at, &length) || length < sizeof(ret->id) || length == UINT32_MAX ||
	    length > frame->size - ret->id_at)
		return false;
	ret->end = ret->id_at + length;
	return read_word(frame, ret->id_at, &ret->id);
}

static bool skip_leb128(const struct jit_eh_frame *frame, size_t end, size_t *at)
{
	for (int i = 0; i < MAX_LEB128_BYTES && *at < end; i++)
		if (!(frame->bytes[(*at)++] & 0x80))
			return true;
	return false;
}

// Finds where in a CIE the encoding of its FDEs' pointers is; 0: nowhere, or after something that
// this does not know.
static size_t find_encoding(const struct jit_eh_frame *frame, const struct entry *cie)
{
	size_t at = cie->id_at + sizeof(cie->id);

	if (cie->id != 0 || cie->end - at < 1 + MAX_AUGMENTATION)
		return 0;
	const uint8_t version = frame->bytes[at++];
	const char *letters = (const char *)frame->bytes + at;
	const size_t n_letters = strnlen(letters, MAX_AUGMENTATION);
	at += n_letters + 1;
	if (letters[0] != 'z' || n_letters == MAX_AUGMENTATION)
		return 0;
	// Skip the factors of code and data, and the return address's register.
	if (!skip_leb128(frame, cie->end, &at) || !skip_leb128(frame, cie->end, &at))
		return 0;
	if (version == 1)
		at++;
	else if (!skip_leb128(frame, cie->end, &at))
		return 0;
	if (!skip_leb128(frame, cie->end, &at)) // the length of what the letters stand for
		return 0;
	for (size_t i = 1; i < n_letters && at < cie->end; i++) {
		if (letters[i] == 'R')
			return at;
		if (letters[i] != 'L' && letters[i] != 'S' && letters[i] != 'B')
			return 0;
		at += letters[i] == 'L';
	}
	return 0;
}

// Returns the encoding that replaces one relative to the text, of the same size; 0: none.
static uint8_t placed_encoding(uint8_t encoding)
{
	if ((encoding & KIND_MASK) != TEXTREL)
		return 0;
	switch (encoding & SIZE_MASK) {
	case UDATA4:
	case SDATA4:
		return PCREL | SDATA4;
	case ABSPTR:
	case UDATA8:
	case SDATA8:
		return UDATA8;
	default:
		return 0;
	}
}

// Adjusts the FDE's pointer to its code.
static bool place_pointer(const struct jit_eh_frame *frame, const struct entry *fde,
                          uint8_t encoding)
{
	const size_t at = fde->id_at + sizeof(fde->id);
	const bool is_long = placed_encoding(encoding) == UDATA8;
	uint64_t value = 0;

	if (fde->end - at < (is_long ? sizeof(value) : sizeof(uint32_t)))
		return false;
	memcpy(&value, frame->bytes + at, is_long ? sizeof(value) : sizeof(uint32_t));
	if ((encoding & SIZE_MASK) == SDATA4)
		value = (uint64_t)(int32_t)value;
	value += frame->text;
	if (is_long) {
		memcpy(frame->bytes + at, &value, sizeof(value));
		return true;
	}
	value -= frame->address + at;
	const int32_t offset = (int32_t)value;
	if ((uint64_t)offset != value)
		return false;
	memcpy(frame->bytes + at, &offset, sizeof(offset));
	return true;
}

// Adjusts an FDE, whose CIE still has the encoding that it came with.
static bool place_fde(const struct jit_eh_frame *frame, const struct entry *fde)
{
	struct entry cie;

	if (fde->id > fde->id_at || !read_entry(frame, fde->id_at - fde->id, &cie))
		return false;
	const size_t at = find_encoding(frame, &cie);
	return at == 0 || !placed_encoding(frame->bytes[at]) ||
	       place_pointer(frame, fde, frame->bytes[at]);
}

void jit_eh_frame_place(const struct jit_eh_frame *frame)
{
	struct entry entry;
	size_t placed = 0;

	for (; read_entry(frame, placed, &entry); placed = entry.end)
		if (entry.id != 0 && !place_fde(frame, &entry))
			break;
	for (size_t at = 0; at < placed && read_entry(frame, at, &entry); at = entry.end) {
		const size_t encoding = find_encoding(frame, &entry);
		if (encoding && placed_encoding(frame->bytes[encoding]))
			frame->bytes[encoding] = placed_encoding(frame->bytes[encoding]);
	}
}
