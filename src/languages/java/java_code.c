// SPDX-License-Identifier: MIT
#include "java_code.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "snapshot.h"

// All that is kept takes at most 15 MB; when a bound is reached, all is forgotten.
enum {
	MAX_SITES = 1 << 17,
	MAX_BLOBS = 1 << 15,
	MAX_LOCATIONS = 1 << 19,
	MAX_CHECKED = 512,     // blobs, of one stack
	CHECK_BYTES = 640,     // of a blob; it needs about 300
	MAX_SEARCHED = 4 << 20 // bytes of a stack
};

void java_code_deinit(struct java_code *code)
{
	free(code->blobs);
	free(code->sites);
	free(code->locations);
	free(code->bytes);
	hash_index_deinit(&code->blob_index);
	hash_index_deinit(&code->site_index);
	*code = (struct java_code){0};
}

static void forget_all(struct java_code *code)
{
	hash_index_clear(&code->blob_index);
	hash_index_clear(&code->site_index);
	code->n_blobs = code->n_sites = code->n_locations = 0;
	code->is_full = false;
}

void java_code_forget_names(struct java_code *code)
{
	for (size_t i = 0; i < code->n_sites; i++) {
		code->sites[i].count = 0;
		code->sites[i].is_named = false;
	}
	code->n_locations = 0;
}

static bool site_equal(const void *context, uint32_t id, const void *key)
{
	return ((const struct java_code *)context)->sites[id].key == *(const uint64_t *)key;
}

static bool blob_equal(const void *context, uint32_t id, const void *key)
{
	return ((const struct java_code *)context)->blobs[id].block == *(const uint64_t *)key;
}

static struct java_site *look_up(const struct java_code *code, uint64_t key)
{
	const uint32_t id =
	    hash_index_find(&code->site_index, hash_mix(key, 0), site_equal, code, &key);

	return id != HASH_NONE ? &code->sites[id] : NULL;
}

// The blobs to be checked.
struct checks {
	struct java_code *code;
	struct java_known_blob *blobs[MAX_CHECKED];
	struct resident_block blocks[MAX_CHECKED];
	size_t n;
};

static void add_check(struct checks *checks, uint64_t word)
{
	struct java_code *code = checks->code;
	const struct java_site *site = look_up(code, word * 2 + 1);

	if (!site || checks->n == MAX_CHECKED)
		return;
	struct java_known_blob *known = &code->blobs[site->blob];
	const size_t size = java_blob_check_bytes(code->layout, &known->blob);
	if (known->asked == code->walk || size > CHECK_BYTES)
		return;
	known->asked = code->walk;
	checks->blobs[checks->n] = known;
	checks->blocks[checks->n] = (struct resident_block){
	    .address = known->block,
	    .bytes = code->bytes + checks->n * CHECK_BYTES,
	    .size = size,
	};
	checks->n++;
}

static void search_region(struct checks *checks, const struct snapshot_region *region)
{
	const struct java_heaps *heaps = checks->code->heaps;
	const uint64_t low = heaps->low, size = heaps->limit - heaps->low;
	const size_t n = region->size < MAX_SEARCHED ? region->size : MAX_SEARCHED;
	uint64_t word;

	for (size_t at = -region->start % sizeof(word); at + sizeof(word) <= n;
	     at += sizeof(word)) {
		memcpy(&word, region->bytes + at, sizeof(word));
		if (word - low < size)
			add_check(checks, word);
	}
}

// What a copy did not get of a page is in no particular state: such words are found or not.
void java_code_begin(struct java_code *code, const struct snapshot *snapshot)
{
	struct checks checks = {.code = code};

	if (code->is_full)
		forget_all(code);
	if (!code->bytes)
		code->bytes = memory_alloc((size_t)MAX_CHECKED * CHECK_BYTES);
	code->walk++;
	for (size_t i = 0; i < snapshot->n_regions; i++)
		search_region(&checks, &snapshot->regions[i]);
	if (checks.n == 0)
		return;
	const struct java_memory *memory = &code->source->memory;
	resident_read_often(memory->resident, memory->tid, checks.blocks, checks.n);
	for (size_t i = 0; i < checks.n; i++)
		if (checks.blocks[i].is_read &&
		    java_blob_is_same(code->layout, &checks.blobs[i]->blob, checks.blocks[i].bytes))
			checks.blobs[i]->checked = code->walk;
}

static bool is_same(const struct java_blob *a, const struct java_blob *b)
{
	return a->kind == b->kind && a->begin == b->begin && a->end == b->end &&
	       a->frame_bytes == b->frame_bytes && a->compile_id == b->compile_id;
}

// Reads the blob that is in the block now. Returns its number.
static uint32_t read_blob(struct java_code *code, uint64_t block)
{
	const uint64_t hash = hash_mix(block, 0);
	uint32_t id = hash_index_find(&code->blob_index, hash, blob_equal, code, &block);
	struct java_blob blob;

	if (id != HASH_NONE && code->blobs[id].checked == code->walk)
		return id;
	if (!java_blob_read(code->source, code->layout, block, &blob))
		return JAVA_NO_BLOB;
	if (id == HASH_NONE) {
		id = (uint32_t)code->n_blobs;
		*array_push(code->blobs, code->n_blobs, code->blobs_capacity) =
		    (struct java_known_blob){.block = block, .blob = blob};
		hash_index_insert(&code->blob_index, hash, id);
		code->is_full |= code->n_blobs >= MAX_BLOBS;
	} else if (!is_same(&code->blobs[id].blob, &blob)) {
		code->blobs[id].made++;
	}
	code->blobs[id].blob = blob;
	code->blobs[id].checked = code->walk;
	return id;
}

static bool holds(const struct java_code *code, const struct java_site *site)
{
	const struct java_known_blob *known = &code->blobs[site->blob];

	return known->checked == code->walk && known->made == site->made;
}

struct java_site *java_code_find(struct java_code *code, uint64_t pc, bool is_return)
{
	const uint64_t key = pc * 2 + is_return;
	struct java_site *site = look_up(code, key);

	if (site && holds(code, site))
		return site;
	const uint64_t block = java_heaps_find(code->heaps, &code->source->memory, pc);
	const uint32_t blob = block ? read_blob(code, block) : JAVA_NO_BLOB;
	if (blob == JAVA_NO_BLOB || pc < code->blobs[blob].blob.begin ||
	    pc >= code->blobs[blob].blob.end)
		return NULL;
	if (!site) {
		site = array_push(code->sites, code->n_sites, code->sites_capacity);
		site->key = key;
		hash_index_insert(&code->site_index, hash_mix(key, 0),
		                  (uint32_t)(code->n_sites - 1));
		code->is_full |= code->n_sites >= MAX_SITES;
		site->blob = JAVA_NO_BLOB;
	}
	if (site->blob != blob || site->made != code->blobs[blob].made)
		*site =
		    (struct java_site){.key = key, .blob = blob, .made = code->blobs[blob].made};
	return site;
}

bool java_code_holds(const struct java_code *code, const struct java_site *site)
{
	const struct java_known_blob *known = &code->blobs[site->blob];
	const size_t size = java_blob_check_bytes(code->layout, &known->blob);
	uint8_t bytes[CHECK_BYTES];

	return size <= sizeof(bytes) &&
	       java_read(&code->source->memory, known->block, bytes, size) &&
	       java_blob_is_same(code->layout, &known->blob, bytes);
}

void java_code_add_location(struct java_code *code, struct java_site *site, uint32_t location)
{
	if (site->count++ == 0)
		site->first = (uint32_t)code->n_locations;
	*array_push(code->locations, code->n_locations, code->locations_capacity) = location;
	code->is_full |= code->n_locations >= MAX_LOCATIONS;
}
