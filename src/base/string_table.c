// SPDX-License-Identifier: MIT
#include "string_table.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "text.h"

void string_table_deinit(struct string_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->items[i]);
	free(table->items);
	hash_index_deinit(&table->index);
	*table = (struct string_table){0};
}

struct key {
	const char *bytes; // not terminated
	size_t length;
};

static bool equal(const void *context, uint32_t id, const void *key_pointer)
{
	const struct string_table *table = context;
	const struct key *key = key_pointer;

	// The key may have a NUL among its bytes.
	return strlen(table->items[id]) == key->length &&
	       memcmp(table->items[id], key->bytes, key->length) == 0;
}

uint32_t string_table_find(const struct string_table *table, const char *bytes, size_t length)
{
	const struct key key = {bytes, length};

	return hash_index_find(&table->index, hash_bytes(bytes, length), equal, table, &key);
}

uint32_t string_table_intern(struct string_table *table, const char *string)
{
	const struct key key = {string, strlen(string)};
	const uint64_t hash = hash_bytes(key.bytes, key.length);
	uint32_t id = hash_index_find(&table->index, hash, equal, table, &key);

	if (id != HASH_NONE)
		return id;
	id = table->count;
	*array_push(table->items, table->count, table->capacity) = memory_strdup(string);
	hash_index_insert(&table->index, hash, id);
	return id;
}

uint32_t string_table_intern_clean(struct string_table *table, const char *string)
{
	const size_t length = strlen(string);

	if (text_is_clean(string, length))
		return string_table_intern(table, string);
	_cleanup_free_ char *clean = text_clean(string, length, TEXT_UNLIMITED);
	return string_table_intern(table, clean);
}
