// SPDX-License-Identifier: MIT
#include "hash.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum { INITIAL_SLOTS = 64 };

static uint32_t slot_hash(uint64_t hash)
{
	return hash >> 32;
}

void hash_index_deinit(struct hash_index *index)
{
	free(index->slots);
	*index = (struct hash_index){0};
}

void hash_index_clear(struct hash_index *index)
{
	if (index->slots)
		memset(index->slots, 0xff, (index->mask + 1) * sizeof(*index->slots));
	index->count = 0;
}

uint32_t hash_index_find(const struct hash_index *index, uint64_t hash, hash_equal_fn *equal,
                         const void *context, const void *key)
{
	if (!index->slots)
		return HASH_NONE;
	for (size_t i = slot_hash(hash) & index->mask;; i = (i + 1) & index->mask) {
		const struct hash_slot *slot = &index->slots[i];
		if (slot->id == HASH_NONE)
			return HASH_NONE;
		if (slot->hash == slot_hash(hash) && equal(context, slot->id, key))
			return slot->id;
	}
}

static void place(struct hash_index *index, struct hash_slot slot)
{
	size_t i = slot.hash & index->mask;

	while (index->slots[i].id != HASH_NONE)
		i = (i + 1) & index->mask;
	index->slots[i] = slot;
}

static void grow(struct hash_index *index)
{
	size_t old_size = index->slots ? index->mask + 1 : 0;
	size_t size = old_size ? old_size * 2 : INITIAL_SLOTS;
	struct hash_slot *old = index->slots;

	index->slots = memory_alloc(size * sizeof(*index->slots));
	memset(index->slots, 0xff, size * sizeof(*index->slots));
	index->mask = size - 1;
	for (size_t i = 0; i < old_size; i++)
		if (old[i].id != HASH_NONE)
			place(index, old[i]);
	free(old);
}

void hash_index_insert(struct hash_index *index, uint64_t hash, uint32_t id)
{
	// At most three quarters full: probes stay short.
	if (!index->slots || (index->count + 1) * 4 > (index->mask + 1) * 3)
		grow(index);
	place(index, (struct hash_slot){.hash = slot_hash(hash), .id = id});
	index->count++;
}

struct items {
	const char *bytes;
	size_t item_bytes, key_bytes;
};

static bool begins_as(const void *context, uint32_t id, const void *item)
{
	const struct items *items = context;

	return memcmp(items->bytes + id * items->item_bytes, item, items->key_bytes) == 0;
}

bool hash_index_note(struct hash_index *index, const void *items, size_t n, size_t item_bytes,
                     size_t key_bytes, const void *item, uint32_t *ret_id)
{
	const struct items all = {items, item_bytes, key_bytes};
	const uint64_t hash = hash_bytes(item, key_bytes);

	*ret_id = hash_index_find(index, hash, begins_as, &all, item);
	if (*ret_id != HASH_NONE)
		return true;
	*ret_id = (uint32_t)n;
	hash_index_insert(index, hash, *ret_id);
	return false;
}

uint64_t hash_bytes(const void *data, size_t size)
{
	const unsigned char *bytes = data;
	uint64_t hash = size;

	// One multiplication for each word; different words never give the same from the same hash.
	while (size >= 8) {
		uint64_t word;
		memcpy(&word, bytes, 8);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
		bytes += 8;
		size -= 8;
	}
	uint64_t tail = 0;
	if (size)
		memcpy(&tail, bytes, size);
	return hash_mix(hash, tail);
}
