// SPDX-License-Identifier: MIT
#include "top_text.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "memory.h"

enum { MIN_CUT_COLUMNS = 12, MIN_START_COLUMNS = 10 };

// The length of the character at `text`, which is whole (text_clean), and what it is.
static size_t decode(const char *text, uint32_t *ret)
{
	const unsigned char first = (unsigned char)text[0];
	const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	uint32_t code = length == 1 ? first : first & (0x7fu >> length);

	for (size_t i = 1; i < length; i++) {
		if (!text[i]) {
			*ret = '_';
			return i;
		}
		code = code << 6 | ((unsigned char)text[i] & 0x3f);
	}
	*ret = code;
	return length;
}

// What is shown is UTF-8, whatever the user's locale is.
static int width_in_utf8(uint32_t code)
{
	static locale_t utf8;

	if (!utf8)
		utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	const locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
	const int width = wcwidth((wchar_t)code);
	if (before)
		uselocale(before);
	return width;
}

// How many columns it takes; 0: it is not to be shown.
static int width_of(uint32_t code)
{
	if (code < 0x20 || code == 0x7f)
		return 0;
	if (code < 0x7f)
		return 1;
	const int width = width_in_utf8(code);
	return width < 0 ? 1 : width;
}

// How many columns it takes as it is shown.
static int shown_width(uint32_t code)
{
	const int columns = width_of(code);

	return columns ? columns : 1;
}

int top_text_width(const char *text)
{
	int width = 0;

	for (uint32_t code; *text;) {
		text += decode(text, &code);
		width += shown_width(code);
	}
	return width;
}

char *top_text_fit(const char *text, int width, bool right)
{
	char *fitted = NULL;
	size_t size;
	FILE *stream = open_memstream(&fitted, &size);
	int used = 0;

	if (!stream)
		return memory_strdup("");
	for (uint32_t code; *text;) {
		const size_t length = decode(text, &code);
		const int columns = width_of(code);
		if (used + shown_width(code) > width)
			break;
		if (columns > 0)
			fwrite(text, 1, length, stream);
		else
			fputc('_', stream);
		used += shown_width(code);
		text += length;
	}
	fclose(stream);
	if (used >= width)
		return fitted;
	char *filled = right ? memory_printf("%*s%s", width - used, "", fitted)
	                     : memory_printf("%s%*s", fitted, width - used, "");
	free(fitted);
	return filled;
}

// Returns the end of the text that takes at most so many columns.
static const char *last_columns(const char *text, int width)
{
	uint32_t code;

	for (int left = top_text_width(text); left > width; left -= shown_width(code))
		text += decode(text, &code);
	return text;
}

// Cuts a text without leading spaces, to fewer columns than it has.
static char *cut_middle(const char *text, int width)
{
	const char *bracket = strrchr(text, '(');
	const bool ends = text[0] && text[strlen(text) - 1] == ')'; // as "f (x.c:3)"
	const char *place = ends && bracket > text && bracket[-1] == ' ' ? bracket : NULL;
	int n_end = (width - 1) / 3;

	if (place && top_text_width(place) + MIN_START_COLUMNS + 1 > width) {
		_cleanup_free_ char *name = memory_strndup(text, (size_t)(place - 1 - text));
		return top_text_cut(name, width);
	}
	if (place)
		n_end = top_text_width(place);
	_cleanup_free_ char *start = top_text_fit(text, width - 1 - n_end, false);
	_cleanup_free_ char *cut = memory_printf("%s\u2026%s", start, last_columns(text, n_end));
	return top_text_fit(cut, width, false);
}

char *top_text_cut(const char *text, int width)
{
	const int indent = (int)strspn(text, " ");
	const int kept = indent + MIN_CUT_COLUMNS <= width ? indent : 0;

	if (top_text_width(text) <= width || width < 3)
		return top_text_fit(text, width, false);
	_cleanup_free_ char *cut = cut_middle(text + kept, width - kept);
	return memory_printf("%*s%s", kept, "", cut);
}
