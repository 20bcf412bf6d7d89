// SPDX-License-Identifier: MIT
// hash: an index from keys to small numbers (positions in the caller's array).
//
// The caller keeps the keys; the index keeps (hash, id) pairs in an open-addressing table. That
// one table serves locations, stacks, samples, strings and rules alike.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONE UINT32_MAX

struct hash_slot {
	uint32_t hash; // the upper half of the key's hash
	uint32_t id;   // HASH_NONE: empty
};

struct hash_index {
	struct hash_slot *slots;
	size_t mask; // number of slots - 1, or 0 before the first insertion
	size_t count;
};

// True if the element `id` of the caller's array equals `key`.
typedef bool hash_equal_fn(const void *context, uint32_t id, const void *key);

// A zeroed struct hash_index is an empty index.
void hash_index_deinit(struct hash_index *index);

// Removes all entries, but keeps the memory.
void hash_index_clear(struct hash_index *index);

// The id stored for `key` (with its `hash`), or HASH_NONE.
uint32_t hash_index_find(const struct hash_index *index, uint64_t hash, hash_equal_fn *equal,
                         const void *context, const void *key);

// Finds the one of n items, of item_bytes each, whose first key_bytes are those of `item`: true,
// and its position. Else notes that the caller appends it now, at position n: false.
bool hash_index_note(struct hash_index *index, const void *items, size_t n, size_t item_bytes,
                     size_t key_bytes, const void *item, uint32_t *ret_id);

// hash_intern(index, items, n, capacity, item, key_bytes): the position among the items of one that
// begins with the same bytes as `item`, a variable; appends it if there is none. Each item was
// added so.
#define hash_intern(index, items, n, capacity, item, key_bytes)                                    \
	__extension__({                                                                            \
		uint32_t id_;                                                                      \
		if (!hash_index_note((index), (items), (n), sizeof(item), (key_bytes), &(item),    \
		                     &id_))                                                        \
			*array_push((items), (n), (capacity)) = (item);                            \
		id_;                                                                               \
	})

// Fetches from memory where a look-up with that hash begins, and does not wait for it.
static inline void hash_index_prefetch(const struct hash_index *index, uint64_t hash)
{
	if (index->slots)
		__builtin_prefetch(&index->slots[hash >> 32 & index->mask]);
}

// Stores `id` under `hash`; the key must not be in the index.
void hash_index_insert(struct hash_index *index, uint64_t hash, uint32_t id);

// The hash of `size` bytes. Chosen keys can collide, which costs time, never correctness.
uint64_t hash_bytes(const void *data, size_t size);

// A well-mixed 64-bit value of a and b (the finalizer of MurmurHash3).
static inline uint64_t hash_mix(uint64_t a, uint64_t b)
{
	uint64_t h = a * 0x9e3779b97f4a7c15u ^ (b + 0x7f4a7c15u + (a << 6) + (a >> 2));

	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdu;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53u;
	h ^= h >> 33;
	return h;
}
