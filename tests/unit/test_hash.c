// SPDX-License-Identifier: MIT
#include <string.h>

#include "hash.h"
#include "memory.h"
#include "unit.h"

enum { N_KEYS = 10000 };

static bool equal(const void *context, uint32_t id, const void *key)
{
	const uint64_t *keys = context;

	return keys[id] == *(const uint64_t *)key;
}

static uint64_t good_hash(uint64_t key)
{
	return hash_mix(key, 0);
}

static uint64_t constant_hash(uint64_t key)
{
	(void)key;
	return UINT64_C(42) << 32;
}

static void check_all(uint64_t hash(uint64_t key), uint32_t n)
{
	_cleanup_free_ uint64_t *keys = memory_alloc_zeroed(n, sizeof(*keys));
	struct hash_index index = {0};

	for (uint32_t i = 0; i < n; i++) {
		keys[i] = (uint64_t)i << 12;
		assert_int_equal(hash_index_find(&index, hash(keys[i]), equal, keys, &keys[i]),
		                 HASH_NONE);
		hash_index_insert(&index, hash(keys[i]), i);
	}
	assert_int_equal(index.count, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(hash_index_find(&index, hash(keys[i]), equal, keys, &keys[i]), i);
	hash_index_deinit(&index);
	assert_null(index.slots);
}

static void test_finds_what_was_inserted(void **state)
{
	(void)state;
	check_all(good_hash, N_KEYS);
}

static void test_equal_hashes(void **state)
{
	(void)state;
	check_all(constant_hash, 500);
}

static void test_empty_and_cleared(void **state)
{
	const uint64_t key = 7;
	struct hash_index index = {0};

	(void)state;
	assert_int_equal(hash_index_find(&index, 1, equal, &key, &key), HASH_NONE);
	hash_index_clear(&index);
	hash_index_insert(&index, good_hash(key), 0);
	assert_int_equal(hash_index_find(&index, good_hash(key), equal, &key, &key), 0);
	hash_index_clear(&index);
	assert_int_equal(index.count, 0);
	assert_int_equal(hash_index_find(&index, good_hash(key), equal, &key, &key), HASH_NONE);
	hash_index_deinit(&index);
}

static void test_bytes(void **state)
{
	const char text[] = "0123456789abcdef";

	(void)state;
	assert_int_equal(hash_bytes(NULL, 0), hash_bytes(text, 0));
	assert_int_equal(hash_bytes(text, 11), hash_bytes("0123456789ab", 11));
	for (size_t i = 0; i < sizeof(text); i++)
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(hash_bytes(text, i), hash_bytes(text, j));
	// Trailing zero bytes count.
	assert_int_not_equal(hash_bytes("a\0", 1), hash_bytes("a\0", 2));
}

// Items that begin alike are one, whatever follows.
static void test_intern(void **state)
{
	struct item {
		uint32_t a, b;
		uint64_t more;
	} *items = NULL;
	struct hash_index index = {0};
	size_t n = 0, capacity = 0;

	(void)state;
	for (uint32_t i = 0; i < 2000; i++) {
		const struct item item = {.a = i % 1000, .b = i % 10, .more = i};
		const uint32_t id = hash_intern(&index, items, n, capacity, item, 8);
		assert_int_equal(id, i % 1000);
		assert_int_equal(items[id].more, i % 1000);
	}
	assert_int_equal(n, 1000);
	free(items);
	hash_index_deinit(&index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_intern),       cmocka_unit_test(test_finds_what_was_inserted),
	    cmocka_unit_test(test_equal_hashes), cmocka_unit_test(test_empty_and_cleared),
	    cmocka_unit_test(test_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
