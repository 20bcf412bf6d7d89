// SPDX-License-Identifier: MIT
#include "base64.h"

#include <stdint.h>

enum { GROUP_BYTES = 3, GROUP_DIGITS = 4 };

static void put_group(FILE *stream, const uint8_t *bytes, size_t n)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t group = 0;

	for (size_t i = 0; i < GROUP_BYTES; i++)
		group = group << 8 | (i < n ? bytes[i] : 0);
	for (size_t i = 0; i < GROUP_DIGITS; i++)
		putc_unlocked(i <= n ? digits[group >> (18 - 6 * i) & 63] : '=', stream);
}

void base64_write(FILE *stream, const void *bytes, size_t size)
{
	const uint8_t *next = bytes;

	for (; size >= GROUP_BYTES; next += GROUP_BYTES, size -= GROUP_BYTES)
		put_group(stream, next, GROUP_BYTES);
	if (size > 0)
		put_group(stream, next, size);
}
