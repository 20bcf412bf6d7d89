// SPDX-License-Identifier: MIT
#include "folded_line.h"

#include <string.h>

enum { MAX_DIGITS = 18 };

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool folded_line_parse(const char *text, size_t length, struct folded_line *ret)
{
	const size_t mark = strlen(BYTE_ORDER_MARK);
	size_t digits = 0;

	if (length >= mark && memcmp(text, BYTE_ORDER_MARK, mark) == 0) {
		text += mark;
		length -= mark;
	}
	while (length > 0 && text[length - 1] == '\r')
		length--;
	while (digits < length && is_digit(text[length - digits - 1]))
		digits++;
	if (digits == 0 || digits > MAX_DIGITS || length < digits + 2 ||
	    !strchr(" \t", text[length - digits - 1]) || text[0] == '#')
		return false;
	*ret = (struct folded_line){.stack = text, .length = length - digits - 1};
	for (size_t i = length - digits; i < length; i++)
		ret->count = ret->count * 10 + (text[i] - '0');
	return true;
}
