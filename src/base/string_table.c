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

static bool equal(const void *context, uint32_t id, const void *key_pointer)
{
	const struct string_table *table = context;
	const struct string_key *key = key_pointer;

	// The key may have a NUL among its bytes.
	return strlen(table->items[id]) == key->length &&
	       memcmp(table->items[id], key->bytes, key->length) == 0;
}

static bool any(const void *context, uint32_t id, const void *key)
{
	(void)context;
	(void)id;
	(void)key;
	return true;
}

void string_table_find(const struct string_table *table, const struct string_key *keys, size_t n,
                       uint32_t *ret)
{
	const struct hash_index *index = &table->index;
	uint64_t hashes[STRING_TABLE_MAX_KEYS];

	// Each loop asks for what the next one needs.
	for (size_t i = 0; i < n; i++) {
		hashes[i] = hash_bytes(keys[i].bytes, keys[i].length);
		hash_index_prefetch(index, hashes[i]);
	}
	for (size_t i = 0; i < n; i++) {
		ret[i] = hash_index_find(index, hashes[i], any, NULL, NULL);
		if (ret[i] != HASH_NONE)
			__builtin_prefetch(&table->items[ret[i]]);
	}
	for (size_t i = 0; i < n; i++)
		if (ret[i] != HASH_NONE)
			__builtin_prefetch(table->items[ret[i]]);
	for (size_t i = 0; i < n; i++)
		if (ret[i] != HASH_NONE && !equal(table, ret[i], &keys[i]))
			ret[i] = hash_index_find(index, hashes[i], equal, table, &keys[i]);
}

uint32_t string_table_intern(struct string_table *table, const char *string)
{
	const struct string_key key = {string, strlen(string)};
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
