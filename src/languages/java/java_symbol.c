// SPDX-License-Identifier: MIT
#include "java_symbol.h"

#include <string.h>

enum { WORD = 8 };

bool java_symbol_read(const struct java_layout *layout, const struct java_memory *memory,
                      uint64_t symbol, char ret[JAVA_SYMBOL_SIZE])
{
	uint16_t length;

	if (symbol == 0 || symbol % WORD != 0 ||
	    !java_read(memory, symbol + (uint64_t)layout->symbol_length, &length, sizeof(length)) ||
	    length == 0)
		return false;
	const size_t size = length < JAVA_SYMBOL_SIZE - 1 ? length : JAVA_SYMBOL_SIZE - 1;
	if (!java_read(memory, symbol + (uint64_t)layout->symbol_body, ret, size))
		return false;
	ret[size] = '\0';
	return strlen(ret) == size;
}

bool java_symbol_constant(const struct java_layout *layout, const struct java_memory *memory,
                          uint64_t pool, uint16_t index, char ret[JAVA_SYMBOL_SIZE])
{
	const uint64_t at = pool + (uint64_t)layout->pool_bytes + (uint64_t)index * WORD;

	return index != 0 && java_symbol_read(layout, memory, java_read_word(memory, at), ret);
}
