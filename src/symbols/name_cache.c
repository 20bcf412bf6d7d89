// SPDX-License-Identifier: MIT
#include "name_cache.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "hash.h"

enum {
	N_SLOTS = 1 << 17,
	MAX_ENTRIES = N_SLOTS / 4 * 3,
	DATA_BYTES = 24 << 20,
	MAX_PROBES = 64,
	MAX_ENTRY_BYTES = 64 << 10,
	ALIGNMENT = 8,
};

// Followed by its lines: a struct line_head, the name, the file, the name in the source, each with
// a NUL.
struct entry {
	struct name_key key;
	uint32_t size; // of all, in bytes
	uint32_t n_lines;
};

struct line_head {
	uint32_t start_line, line, is_plain;
};

struct name_cache {
	_Atomic uint32_t n_entries;
	_Atomic uint64_t used;             // bytes of data that are taken, or were asked for
	_Atomic uint32_t offsets[N_SLOTS]; // 1 + of an entry in data, by the key's hash; 0: none
	_Alignas(ALIGNMENT) uint8_t data[DATA_BYTES];
};

struct name_cache *name_cache_create(void)
{
	void *memory = mmap(NULL, sizeof(struct name_cache), PROT_READ | PROT_WRITE,
	                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void name_cache_destroy(struct name_cache *cache)
{
	if (cache)
		munmap(cache, sizeof(*cache));
}

bool name_cache_is_full(const struct name_cache *cache)
{
	return cache->used > DATA_BYTES || cache->n_entries > MAX_ENTRIES;
}

static uint64_t hash_key(const struct name_key *key)
{
	return hash_mix(
	    hash_mix(hash_mix(key->device, key->inode), hash_mix(key->build, key->code)),
	    key->address);
}

static bool is_of(const struct entry *entry, const struct name_key *key)
{
	return entry->key.address == key->address && entry->key.inode == key->inode &&
	       entry->key.device == key->device && entry->key.build == key->build &&
	       entry->key.code == key->code;
}

// Returns the entry of a slot that is taken.
static const struct entry *entry_at(const struct name_cache *cache, uint32_t offset)
{
	return (const struct entry *)(cache->data + (offset - 1));
}

static const struct entry *find(const struct name_cache *cache, const struct name_key *key)
{
	const uint64_t hash = hash_key(key);

	for (uint64_t i = 0; i < MAX_PROBES; i++) {
		const uint32_t offset = cache->offsets[(hash + i) % N_SLOTS];
		if (!offset)
			return NULL;
		if (is_of(entry_at(cache, offset), key))
			return entry_at(cache, offset);
	}
	return NULL;
}

int name_cache_find(const struct name_cache *cache, const struct name_key *key,
                    struct cached_line ret[NAME_CACHE_MAX_LINES])
{
	const struct entry *entry = find(cache, key);

	if (!entry)
		return -1;
	const char *at = (const char *)(entry + 1);
	for (uint32_t i = 0; i < entry->n_lines; i++) {
		struct line_head head;
		memcpy(&head, at, sizeof(head));
		ret[i] = (struct cached_line){
		    .system_name = at + sizeof(head),
		    .start_line = head.start_line,
		    .line = head.line,
		    .is_plain = head.is_plain,
		};
		ret[i].file = ret[i].system_name + strlen(ret[i].system_name) + 1;
		ret[i].source_name = ret[i].file + strlen(ret[i].file) + 1;
		at = ret[i].source_name + strlen(ret[i].source_name) + 1;
	}
	return (int)entry->n_lines;
}

static size_t size_of(const struct cached_line *lines, size_t n)
{
	size_t size = sizeof(struct entry);

	for (size_t i = 0; i < n; i++)
		size += sizeof(struct line_head) + strlen(lines[i].system_name) +
		        strlen(lines[i].file) + strlen(lines[i].source_name) + 3;
	return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

// Takes room that only this process uses; UINT64_MAX: there is none.
static uint64_t take_room(struct name_cache *cache, size_t size)
{
	if (name_cache_is_full(cache))
		return UINT64_MAX;
	const uint64_t offset = atomic_fetch_add(&cache->used, size);
	return offset + size <= DATA_BYTES ? offset : UINT64_MAX;
}

static void write_lines(char *at, const struct cached_line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct line_head head = {lines[i].start_line, lines[i].line,
		                               lines[i].is_plain};
		memcpy(at, &head, sizeof(head));
		at = stpcpy(at + sizeof(head), lines[i].system_name) + 1;
		at = stpcpy(at, lines[i].file) + 1;
		at = stpcpy(at, lines[i].source_name) + 1;
	}
}

// Makes the entry visible to others, unless another process has added the same meanwhile.
static void publish(struct name_cache *cache, const struct name_key *key, uint32_t offset)
{
	const uint64_t hash = hash_key(key);

	for (uint64_t i = 0; i < MAX_PROBES; i++) {
		uint32_t there = 0;
		if (atomic_compare_exchange_strong(&cache->offsets[(hash + i) % N_SLOTS], &there,
		                                   offset)) {
			cache->n_entries++;
			return;
		}
		if (is_of(entry_at(cache, there), key))
			return;
	}
}

void name_cache_add(struct name_cache *cache, const struct name_key *key,
                    const struct cached_line *lines, size_t n)
{
	const size_t size = size_of(lines, n);

	if (n > NAME_CACHE_MAX_LINES || size > MAX_ENTRY_BYTES || find(cache, key))
		return;
	const uint64_t offset = take_room(cache, size);
	if (offset == UINT64_MAX)
		return;
	struct entry *entry = (struct entry *)(cache->data + offset);
	*entry = (struct entry){.key = *key, .size = (uint32_t)size, .n_lines = (uint32_t)n};
	write_lines((char *)(entry + 1), lines, n);
	publish(cache, key, (uint32_t)offset + 1);
}
