// SPDX-License-Identifier: MIT
#include "base64.h"

#include <stdint.h>

enum { GROUP_BYTES = 3, GROUP_DIGITS = 4, PART_DIGITS = 1 << 12 };

static void put_group(char *ret, const uint8_t *bytes, size_t n)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t group = 0;

	for (size_t i = 0; i < GROUP_BYTES; i++)
		group = group << 8 | (i < n ? bytes[i] : 0);
	for (size_t i = 0; i < GROUP_DIGITS; i++)
		ret[i] = i <= n ? digits[group >> (18 - 6 * i) & 63] : '=';
}

void base64_write(FILE *stream, const void *bytes, size_t size)
{
	const uint8_t *next = bytes;
	char part[PART_DIGITS];

	while (size > 0) {
		size_t n = 0;
		while (size > 0 && n < PART_DIGITS) {
			const size_t taken = size < GROUP_BYTES ? size : GROUP_BYTES;
			put_group(part + n, next, taken);
			n += GROUP_DIGITS;
			next += taken;
			size -= taken;
		}
		// cppcheck-suppress uninitvar ; the loop has filled these
		fwrite(part, 1, n, stream);
	}
}
