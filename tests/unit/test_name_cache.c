// SPDX-License-Identifier: MIT
// The names that processes share: found by all, whole or not at all, and never more than there is
// room for.
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"
#include "name_cache.h"
#include "unit.h"

static struct name_key key_of(uint64_t address)
{
	return (struct name_key){
	    .device = 1, .inode = 2, .build = 3, .address = address, .code = 4};
}

static void add(struct name_cache *cache, uint64_t address, size_t n_lines, size_t name_bytes)
{
	const struct name_key key = key_of(address);
	_cleanup_free_ char *name = memory_alloc(name_bytes + 1);
	struct cached_line lines[NAME_CACHE_MAX_LINES];

	assert_true(n_lines <= NAME_CACHE_MAX_LINES);
	memset(name, 'a' + (int)(address % 26), name_bytes);
	name[name_bytes] = '\0';
	for (size_t i = 0; i < n_lines; i++)
		lines[i] = (struct cached_line){
		    name, "/a/file.c", i == 1 ? "f" : "", (uint32_t)address, (uint32_t)i, i == 2};
	name_cache_add(cache, &key, lines, n_lines);
}

// Not there: -1; else the lines, each as they were added.
static int check(const struct name_cache *cache, uint64_t address, size_t name_bytes)
{
	static struct cached_line lines[NAME_CACHE_MAX_LINES];
	const struct name_key key = key_of(address);
	const int n = name_cache_find(cache, &key, lines);

	for (int i = 0; i < n; i++) {
		assert_int_equal(strlen(lines[i].system_name), name_bytes);
		assert_int_equal(
		    strspn(lines[i].system_name, (char[]){(char)('a' + (int)(address % 26)), '\0'}),
		    name_bytes);
		assert_string_equal(lines[i].file, "/a/file.c");
		assert_string_equal(lines[i].source_name, i == 1 ? "f" : "");
		assert_int_equal(lines[i].start_line, address);
		assert_int_equal(lines[i].line, i);
		assert_int_equal(lines[i].is_plain, i == 2);
	}
	return n;
}

static void test_shared(void **state)
{
	struct name_cache *cache = name_cache_create();
	struct cached_line lines[NAME_CACHE_MAX_LINES];

	(void)state;
	assert_int_equal(check(cache, 10, 5), -1);
	const pid_t child = fork();
	if (child == 0) {
		for (size_t i = 0; i < 4; i++)
			add(cache, 10 + i, i, 5);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	for (int i = 0; i < 4; i++)
		assert_int_equal(check(cache, 10 + (uint64_t)i, 5), i);
	for (int i = 0; i < 4; i++) { // any other file, address or code
		struct name_key key = key_of(12);
		*(uint64_t *[]){&key.device, &key.inode, &key.build, &key.code}[i] += 1;
		assert_int_equal(name_cache_find(cache, &key, lines), -1);
	}
	name_cache_destroy(cache);
}

static void test_full(void **state)
{
	struct name_cache *cache = name_cache_create();
	uint64_t n = 0;

	(void)state;
	add(cache, 1, 1, 70000); // too large for any
	assert_int_equal(check(cache, 1, 70000), -1);
	while (!name_cache_is_full(cache)) {
		assert_true(n < 1000000);
		add(cache, n++, 1, 20000);
	}
	for (uint64_t i = 0; i + 1 < n; i++)
		assert_int_equal(check(cache, i, 20000), 1);
	assert_int_equal(check(cache, n - 1, 20000), -1);
	add(cache, n, 1, 1);
	assert_int_equal(check(cache, n, 1), -1);
	name_cache_destroy(cache);
}

// Several write the same, and are killed while they do.
static void test_killed(void **state)
{
	struct name_cache *cache = name_cache_create();
	uint64_t n_found = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		int fds[2];
		char byte;
		assert_int_equal(pipe(fds), 0);
		const pid_t child = fork();
		if (child == 0) {
			for (uint64_t address = 0; address < 100000; address++) {
				add(cache, address, 2, 30);
				if (address == 100 && write(fds[1], "x", 1) != 1)
					_exit(1);
			}
			_exit(0);
		}
		assert_int_equal(read(fds[0], &byte, 1), 1);
		if (i % 2)
			kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		close(fds[0]);
		close(fds[1]);
	}
	for (uint64_t address = 0; address < 100000; address++)
		n_found += check(cache, address, 30) == 2;
	assert_true(n_found > 100);
	name_cache_destroy(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_shared),
	    cmocka_unit_test(test_full),
	    cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
