// SPDX-License-Identifier: MIT
#include "java_fields.h"

#include <string.h>

#include "java_stream.h"
#include "java_symbol.h"

enum {
	MAX_FIELDS = 512,
	MAX_STREAM_BYTES = 8192,
	MAX_OFFSET = 4096,
	STATIC = 8, // JVM_ACC_STATIC
	// Of the array, JDK 20 and before.
	SLOTS = 6,
	FLAGS_SLOT = 0,
	NAME_SLOT = 1,
	LOW_SLOT = 4,
	HIGH_SLOT = 5,
	TAG_BITS = 2,
	// Of the stream: which numbers a field has besides the first five.
	HAS_INITIAL = 1 << 0,
	HAS_SIGNATURE = 1 << 2,
	HAS_GROUP = 1 << 4,
};

// What is looked for.
struct search {
	const struct java_layout *layout;
	const struct java_memory *memory;
	uint64_t class, pool;
	const char *name;
};

bool java_fields_are_known(const struct java_layout *layout)
{
	return layout->class_constants >= 0 &&
	       (layout->class_stream >= 0
	            ? layout->bytes_data >= 0
	            : layout->class_fields >= 0 && layout->class_n_fields >= 0 &&
	                  layout->words_data >= 0);
}

static bool fits(const struct search *search, uint32_t name, uint32_t flags)
{
	char text[JAVA_SYMBOL_SIZE];

	return !(flags & STATIC) && name <= UINT16_MAX &&
	       java_symbol_constant(search->layout, search->memory, search->pool, (uint16_t)name,
	                            text) &&
	       strcmp(text, search->name) == 0;
}

static int32_t checked(uint32_t offset)
{
	return offset < MAX_OFFSET ? (int32_t)offset : JAVA_NO_FIELD;
}

static int32_t find_in_array(const struct search *search)
{
	const struct java_layout *layout = search->layout;
	uint16_t slots[MAX_FIELDS * SLOTS], n = 0;
	const uint64_t array =
	    java_read_word(search->memory, search->class + (uint64_t)layout->class_fields);

	if (!java_read(search->memory, search->class + (uint64_t)layout->class_n_fields, &n,
	               sizeof(n)) ||
	    n > MAX_FIELDS || array == 0 ||
	    !java_read(search->memory, array + (uint64_t)layout->words_data, slots,
	               n * SLOTS * sizeof(*slots)))
		return JAVA_NO_FIELD;
	for (const uint16_t *field = slots; field < slots + (size_t)n * SLOTS; field += SLOTS)
		if (fits(search, field[NAME_SLOT], field[FLAGS_SLOT]))
			return checked(((uint32_t)field[HIGH_SLOT] << 16 | field[LOW_SLOT]) >>
			               TAG_BITS);
	return JAVA_NO_FIELD;
}

static int32_t find_in_stream(const struct search *search)
{
	const struct java_layout *layout = search->layout;
	const uint64_t array =
	    java_read_word(search->memory, search->class + (uint64_t)layout->class_stream);
	uint8_t bytes[MAX_STREAM_BYTES];
	uint32_t length = 0;

	if (array == 0 || !java_read(search->memory, array, &length, sizeof(length)) ||
	    length > sizeof(bytes) ||
	    !java_read(search->memory, array + (uint64_t)layout->bytes_data, bytes, length))
		return JAVA_NO_FIELD;
	struct java_stream stream = {bytes, bytes + length, true};
	const uint32_t n = java_stream_unsigned(&stream);
	java_stream_unsigned(&stream); // those that HotSpot has added have names of its own
	for (uint32_t i = 0; i < n && i < MAX_FIELDS; i++) {
		const uint32_t name = java_stream_unsigned(&stream);
		java_stream_unsigned(&stream); // the signature
		const uint32_t offset = java_stream_unsigned(&stream);
		const uint32_t flags = java_stream_unsigned(&stream);
		const uint32_t has = java_stream_unsigned(&stream);
		if (fits(search, name, flags))
			return checked(offset);
		for (uint32_t bits = has & (HAS_INITIAL | HAS_SIGNATURE | HAS_GROUP); bits;
		     bits &= bits - 1)
			java_stream_unsigned(&stream);
	}
	return JAVA_NO_FIELD;
}

int32_t java_fields_find(const struct java_layout *layout, const struct java_memory *memory,
                         uint64_t class, const char *name)
{
	const struct search search = {
	    layout, memory, class,
	    java_read_word(memory, class + (uint64_t)layout->class_constants), name};

	if (search.pool == 0)
		return JAVA_NO_FIELD;
	return layout->class_stream >= 0 ? find_in_stream(&search) : find_in_array(&search);
}
