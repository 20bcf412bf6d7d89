// SPDX-License-Identifier: MIT
#include "text.h"

#include <string.h>

#include "hash.h"
#include "memory.h"

#define REPLACEMENT "\xef\xbf\xbd" // U+FFFD
#define ELLIPSIS "..."

enum { MAX_CHARACTER_BYTES = 4 };

// One step through the input: how many bytes it takes, and what stands for them in the output.
struct step {
	size_t taken;
	const char *output;
	size_t output_length;
};

// The bytes of the character at `bytes` and its code point, by table 3-7 of the Unicode standard
// (no overlong forms, no surrogates, nothing above U+10FFFF); 0 if it is not well-formed.
static size_t decode(const unsigned char *bytes, size_t length, uint32_t *ret)
{
	static const uint32_t smallest[MAX_CHARACTER_BYTES + 1] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char lead = bytes[0];
	size_t size;

	if (lead < 0x80)
		size = 1;
	else if (lead < 0xc0 || lead > 0xf4)
		return 0;
	else
		size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	if (size > length)
		return 0;
	uint32_t point = size == 1 ? lead : lead & (0x7fu >> size);
	for (size_t i = 1; i < size; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (bytes[i] & 0x3f);
	}
	if (point < smallest[size] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
		return 0;
	*ret = point;
	return size;
}

// The controls of writing direction among them make text read as another one (CVE-2021-42574).
static bool is_control(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point <= 0x9f) ||
	       (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

static struct step step(const char *bytes, size_t length)
{
	uint32_t point = 0;
	size_t size = decode((const unsigned char *)bytes, length, &point);

	if (size == 0)
		return (struct step){1, REPLACEMENT, strlen(REPLACEMENT)};
	if (is_control(point))
		return (struct step){size, "_", 1};
	if ((point & 0xfffe) == 0xfffe)
		return (struct step){size, REPLACEMENT, strlen(REPLACEMENT)};
	return (struct step){size, bytes, size};
}

char *text_clean(const char *bytes, size_t length, size_t max_length)
{
	const size_t most = length <= max_length / 3 ? length * 3 : max_length;
	const size_t ellipsis = max_length < strlen(ELLIPSIS) ? max_length : strlen(ELLIPSIS);
	char *text = memory_alloc(most + 1);
	size_t n = 0, cut = 0; // cut: the last place that leaves room for the ellipsis

	while (length > 0) {
		const struct step s = step(bytes, length);
		if (s.output_length > max_length - n) {
			memcpy(text + cut, ELLIPSIS, ellipsis);
			n = cut + ellipsis;
			break;
		}
		memcpy(text + n, s.output, s.output_length);
		n += s.output_length;
		if (n <= max_length - ellipsis)
			cut = n;
		bytes += s.taken;
		length -= s.taken;
	}
	text[n] = '\0';
	return text;
}

char *text_cut(const char *text, size_t max_length)
{
	const size_t length = strlen(text), kept = max_length - strlen(ELLIPSIS "#01234567");

	if (length <= max_length)
		return memory_strdup(text);
	return memory_printf("%.*s" ELLIPSIS "#%08x", (int)kept, text,
	                     (uint32_t)hash_bytes(text, length));
}

const char *text_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

bool text_ends_with(const char *text, const char *end)
{
	const size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

bool text_is_clean(const char *bytes, size_t length)
{
	while (length > 0) {
		const struct step s = step(bytes, length);
		if (s.output != bytes)
			return false;
		bytes += s.taken;
		length -= s.taken;
	}
	return true;
}

char *text_quote_file(const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
	                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	                            "%+,-./:=@_";
	const char *here = name[0] == '-' ? "./" : "";

	if (name[0] && !name[strspn(name, plain)])
		return memory_printf("%s%s", here, name);
	char *text = memory_alloc(4 * strlen(name) + sizeof("./''"));
	char *end = stpcpy(stpcpy(text, here), "'");
	for (; *name; name++)
		end = *name == '\'' ? stpcpy(end, "'\\''") : stpncpy(end, name, 1);
	stpcpy(end, "'");
	return text;
}

bool text_begins_with_any(const char *text, const char *const *starts)
{
	for (size_t i = 0; starts[i]; i++)
		if (text_begins_with(text, starts[i]))
			return true;
	return false;
}

bool text_contains_any(const char *text, const char *const *parts)
{
	for (size_t i = 0; parts[i]; i++)
		if (strstr(text, parts[i]))
			return true;
	return false;
}
