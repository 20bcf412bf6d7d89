// SPDX-License-Identifier: MIT
// perf_map: what runtimes write, and what is none.
#include <stdio.h>
#include <string.h>

#include "memory.h"
#include "perf_map.h"
#include "unit.h"

static void parse(struct perf_map *map, const char *text)
{
	perf_map_parse(map, text, strlen(text));
	perf_map_sort(map);
}

static const char *name_at(const struct perf_map *map, uint64_t address)
{
	const char *name = perf_map_name(map, perf_map_find(map, address));

	return name ? name : "";
}

static void test_lines(void **state)
{
	struct perf_map *map = perf_map_create();

	(void)state;
	assert_int_equal(perf_map_size(map), 0);
	parse(map, "3ef414c0 398 RegExp:[{(]\n"                              // V8
	           "0x00007f0e2c 0x0000000020 java.lang.Object.wait(long)\n" // HotSpot
	           "1000 10 LazyCompile:~a b /c.js:1\n");
	assert_true(perf_map_size(map) > 0);
	assert_string_equal(name_at(map, 0x3ef414c0), "RegExp:[{(]");
	assert_string_equal(name_at(map, 0x3ef414c0 + 0x397), "RegExp:[{(]");
	assert_string_equal(name_at(map, 0x3ef414c0 + 0x398), "");
	assert_string_equal(name_at(map, 0x7f0e2c), "java.lang.Object.wait(long)");
	assert_string_equal(name_at(map, 0x1008), "LazyCompile:~a b /c.js:1");
	assert_string_equal(name_at(map, 0xfff), "");
	perf_map_destroy(map);
}

static void test_no_lines(void **state)
{
	struct perf_map *map = perf_map_create();

	(void)state;
	parse(map, "\n1000\n1000 \n1000 10\n1000 10 \n1000 0 empty\n-1000 10 a\n1000 -10 b\n"
	           " 1000 10 c\n1000  10 d\nx 10 e\n1000 x f\nffffffffffffffff 10 g\n1000 10 h");
	assert_int_equal(perf_map_size(map), 0); // the last one has not ended yet
	parse(map, "i\n");
	assert_string_equal(name_at(map, 0x1000), "hi");
	assert_null(perf_map_name(map, PERF_MAP_NONE));
	assert_null(perf_map_name(map, 2));
	perf_map_destroy(map);
}

static void test_cut_anywhere(void **state)
{
	const char text[] = "1000 10 first\n2000 20 second name\n";

	(void)state;
	for (size_t cut = 0; cut < sizeof(text); cut++) {
		struct perf_map *map = perf_map_create();
		perf_map_parse(map, text, cut);
		perf_map_parse(map, text + cut, sizeof(text) - 1 - cut);
		perf_map_sort(map);
		assert_string_equal(name_at(map, 0x100f), "first");
		assert_string_equal(name_at(map, 0x201f), "second name");
		perf_map_destroy(map);
	}
}

// The same against the plain rule: the last line that holds the address.
static void test_later_lines_win(void **state)
{
	enum { N = 3000, ADDRESSES = 512 };
	struct perf_map *map = perf_map_create();
	uint32_t expected[ADDRESSES] = {0}, random = 1;

	(void)state;
	for (uint32_t i = 1; i <= N; i++) {
		char line[64];
		random = random * 1103515245 + 12345;
		const uint32_t start = (random >> 8) % ADDRESSES, size = (random >> 20) % 40 + 1;
		snprintf(line, sizeof(line), "%x %x f%u\n", start, size, i);
		parse(map, line);
		for (uint32_t at = start; at < start + size && at < ADDRESSES; at++)
			expected[at] = i;
		for (uint32_t at = i % 7; at < ADDRESSES; at += 7)
			assert_int_equal(perf_map_find(map, at), expected[at]);
	}
	assert_string_equal(perf_map_name(map, N), "f3000");
	perf_map_destroy(map);
}

static void test_forget(void **state)
{
	struct perf_map *map = perf_map_create();

	(void)state;
	parse(map, "1000 10 old\n1020 10 half a li");
	const uint32_t old = perf_map_find(map, 0x1000);
	perf_map_forget(map);
	assert_int_equal(perf_map_find(map, 0x1000), PERF_MAP_NONE);
	assert_string_equal(perf_map_name(map, old), "old");
	parse(map, "1008 10 new\n");
	assert_string_equal(name_at(map, 0x1008), "new");
	assert_string_equal(name_at(map, 0x1020), "");
	perf_map_destroy(map);
}

static void test_bounds(void **state)
{
	struct perf_map *map = perf_map_create();
	_cleanup_free_ char *line = memory_alloc(1 << 20);

	(void)state;
	memset(line, 'x', 1 << 20);
	parse(map, "1000 10 ");
	perf_map_parse(map, line, 1 << 20);
	parse(map, "\n2000 10 after\n");
	assert_in_range(strlen(name_at(map, 0x1000)), 1000, 8192);
	assert_string_equal(name_at(map, 0x2000), "after");
	assert_null(perf_map_unreadable(map));
	for (size_t at = 0; at < 8000; at += 8)
		memcpy(line + at, "1 1 abc\n", 8);
	for (int i = 0; i < 2000; i++)
		perf_map_parse(map, line, 8000);
	perf_map_sort(map);
	assert_non_null(perf_map_unreadable(map));
	assert_string_equal(name_at(map, 1), "abc");
	perf_map_destroy(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lines),        cmocka_unit_test(test_no_lines),
	    cmocka_unit_test(test_cut_anywhere), cmocka_unit_test(test_later_lines_win),
	    cmocka_unit_test(test_forget),       cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
