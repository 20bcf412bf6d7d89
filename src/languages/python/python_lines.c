// SPDX-License-Identifier: MIT
#include "python_lines.h"

enum {
	UNIT_BYTES = 2, // of an instruction
	NO_LINE_3_10 = -128,
	// Codes of an entry of the location table.
	ONE_LINE_0 = 10, // to 12: so many lines further
	NO_COLUMNS = 13,
	LONG = 14,
	NO_LOCATION = 15,
};

// Lines are numbers of the target's making: sums of them wrap.
static uint32_t add(uint32_t line, int32_t delta)
{
	return line + (uint32_t)delta;
}

static uint32_t find_3_9(const uint8_t *table, size_t size, uint32_t line, int64_t at)
{
	int64_t end = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		end += table[i];
		if (end > at)
			break;
		line = add(line, (int8_t)table[i + 1]);
	}
	return line;
}

static uint32_t find_3_10(const uint8_t *table, size_t size, uint32_t line, int64_t at)
{
	int64_t start = 0;

	if (at < 0)
		return line;
	for (size_t i = 0; i + 1 < size; i += 2) {
		const int64_t end = start + table[i];
		const int8_t delta = (int8_t)table[i + 1];
		if (delta != NO_LINE_3_10)
			line = add(line, delta);
		if (start <= at && at < end)
			return delta == NO_LINE_3_10 ? 0 : line;
		start = end;
	}
	return 0;
}

// A number of six bits a byte, the first byte's the lowest.
static uint32_t take_varint(const uint8_t *table, size_t size, size_t *i)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; *i < size && shift < 32; shift += 6) {
		const uint8_t byte = table[(*i)++];
		value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int32_t take_signed(const uint8_t *table, size_t size, size_t *i)
{
	const uint32_t value = take_varint(table, size, i);

	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

static uint32_t find_3_11(const uint8_t *table, size_t size, uint32_t line, int64_t at)
{
	int64_t end = 0;

	if (at < 0)
		at = 0;
	for (size_t i = 0; i < size;) {
		const uint8_t first = table[i++];
		const int code = first >> 3 & 15;
		end += ((first & 7) + 1) * UNIT_BYTES;
		if (code == NO_COLUMNS || code == LONG)
			line = add(line, take_signed(table, size, &i));
		else if (code >= ONE_LINE_0 && code < NO_COLUMNS)
			line = add(line, code - ONE_LINE_0);
		if (end > at)
			return code == NO_LOCATION ? 0 : line;
		while (i < size && !(table[i] & 128)) // of this entry, still
			i++;
	}
	return 0;
}

uint32_t python_lines_find(int minor, const uint8_t *table, size_t size, uint32_t first_line,
                           int64_t at)
{
	if (minor <= 9)
		return find_3_9(table, size, first_line, at);
	return minor == 10 ? find_3_10(table, size, first_line, at)
	                   : find_3_11(table, size, first_line, at);
}
