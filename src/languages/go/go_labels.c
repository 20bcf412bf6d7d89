// SPDX-License-Identifier: MIT
#include "go_labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "go_program.h"
#include "labels.h"
#include "memory.h"
#include "resident.h"

enum {
	MAX_LABELS = 64,
	MAX_BYTES = 257, // of a key, and of a value: one more than labels_add takes without a mark
	WORD = 8,

	FIRST_WITH_LISTS = 24, // Go 1.24

	// Of a map: struct hmap, and its buckets (struct bmap), each with a byte for each place,
	// then the keys, the values, and the next one's address.
	HMAP_B = 9,
	HMAP_BUCKETS = 16,
	HMAP_WORDS = 4,
	MAX_B = 4,
	PLACES = 8,
	MIN_TOP_HASH = 5,
	BUCKET_BYTES = PLACES + PLACES * 32 + WORD,
	MAX_BUCKETS = 64, // with those that overflow
};

// The header of a string in memory.
struct header {
	uint64_t address, length;
};

struct pair {
	struct header key, value;
};

struct search {
	const struct go_program *program;
	const struct go_memory *memory;
	struct pair pairs[MAX_LABELS];
	size_t n;
};

struct named {
	char key[MAX_BYTES + 1], value[MAX_BYTES + 1];
};

static bool read_list(struct search *search, uint64_t address)
{
	struct header list;

	if (!go_memory_read(search->memory, address, &list, sizeof(list)) ||
	    list.length > MAX_LABELS)
		return false;
	search->n = list.length;
	return list.length == 0 || go_memory_read(search->memory, list.address, search->pairs,
	                                          list.length * sizeof(struct pair));
}

static bool take_bucket(struct search *search, const uint8_t *bucket)
{
	for (size_t i = 0; i < PLACES; i++) {
		if (bucket[i] < MIN_TOP_HASH)
			continue;
		if (search->n == MAX_LABELS)
			return false;
		struct pair *pair = &search->pairs[search->n++];
		memcpy(&pair->key, bucket + PLACES + i * sizeof(pair->key), sizeof(pair->key));
		memcpy(&pair->value, bucket + PLACES + (PLACES + i) * sizeof(pair->key),
		       sizeof(pair->value));
	}
	return true;
}

static bool read_map(struct search *search, uint64_t address)
{
	uint8_t map[HMAP_WORDS * WORD], bucket[BUCKET_BYTES];
	uint64_t header, first;
	int n_left = MAX_BUCKETS;

	if (!go_memory_read(search->memory, address, &header, sizeof(header)) ||
	    !go_memory_read(search->memory, header, map, sizeof(map)) || map[HMAP_B] > MAX_B)
		return false;
	memcpy(&first, map + HMAP_BUCKETS, sizeof(first));
	for (size_t i = 0; i < (size_t)1 << map[HMAP_B]; i++) {
		uint64_t at = first + i * BUCKET_BYTES;
		while (at) {
			if (n_left-- == 0 ||
			    !go_memory_read(search->memory, at, bucket, sizeof(bucket)) ||
			    !take_bucket(search, bucket))
				return false;
			memcpy(&at, bucket + BUCKET_BYTES - WORD, sizeof(at));
		}
	}
	return true;
}

static struct resident_block block_of(const struct header *header, char bytes[MAX_BYTES + 1])
{
	memset(bytes, 0, MAX_BYTES + 1);
	return (struct resident_block){
	    .address = header->address,
	    .bytes = bytes,
	    .size = header->length < MAX_BYTES ? header->length : MAX_BYTES,
	};
}

// Reads all keys and values.
static bool read_texts(const struct search *search, struct named *ret)
{
	struct resident_block blocks[2 * MAX_LABELS];

	for (size_t i = 0; i < search->n; i++) {
		blocks[2 * i] = block_of(&search->pairs[i].key, ret[i].key);
		blocks[2 * i + 1] = block_of(&search->pairs[i].value, ret[i].value);
	}
	resident_read_blocks(search->memory->resident, search->memory->tid, blocks, 2 * search->n);
	for (size_t i = 0; i < 2 * search->n; i++) {
		char *text = blocks[i].bytes;
		if (blocks[i].size > 0 && !blocks[i].is_read)
			return false;
		for (size_t j = 0; j < blocks[i].size; j++)
			if (text[j] == '\0')
				text[j] = '_'; // as all control characters are shown
	}
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct named *one = a, *other = b;
	const int order = strcmp(one->key, other->key);

	return order ? order : strcmp(one->value, other->value);
}

static bool is_ours(const char *key)
{
	static const char *const keys[] = {
	    "pid",     "process", "tid",        "goid",        "thread",    "state",  "kind",
	    "syscall", "wait",    "descriptor", "since",       "unwound",   "locked", "gil",
	    "gc",      "task",    "awaited_by", "interpreter", LABELS_LACK,
	};

	for (size_t i = 0; i < array_size(keys); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return false;
}

bool go_labels_read(const struct go_program *program, const struct go_memory *memory,
                    uint64_t address, char **text)
{
	struct search search = {.program = program, .memory = memory};
	const bool are_listed = program->minor < 0 || program->minor >= FIRST_WITH_LISTS;

	if (address == 0)
		return true;
	if (address % WORD != 0 ||
	    !(are_listed ? read_list(&search, address) : read_map(&search, address)))
		return false;
	_cleanup_free_ struct named *named = memory_alloc(MAX_LABELS * sizeof(*named));
	if (!read_texts(&search, named))
		return false;
	qsort(named, search.n, sizeof(*named), compare);
	for (size_t i = 0; i < search.n; i++) {
		_cleanup_free_ char *key =
		    memory_printf("%s%s", is_ours(named[i].key) ? "go." : "", named[i].key);
		labels_add(text, key, named[i].value);
	}
	return true;
}
