// SPDX-License-Identifier: MIT
// code_watch: of this process's own mappings.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "code_watch.h"

enum { BYTES = 8192 };

static FILE *make_file(void)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), 2 * BYTES), 0);
	return file;
}

static void *map(void *at, FILE *file, off_t offset)
{
	void *start = mmap(at, BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | (at ? MAP_FIXED : 0),
	                   fileno(file), offset);

	assert_ptr_not_equal(start, MAP_FAILED);
	return start;
}

static bool changed(struct code_watch *watch)
{
	return code_watch_changed(watch, getpid(), getpid());
}

static void watch_code_at(struct code_watch *watch, const void *start)
{
	struct maps maps = {0};

	assert_true(maps_read(&maps, getpid(), getpid()));
	code_watch_clear(watch);
	code_watch_add(watch, maps_find(&maps, (uintptr_t)start));
	maps_deinit(&maps);
}

// Where the kernel cannot be asked, nothing is ever said to have changed.
static void test_another_file(void **state)
{
	FILE *one = make_file(), *other = make_file();
	void *start = map(NULL, one, 0);
	struct code_watch watch;

	(void)state;
	code_watch_init(&watch);
	watch_code_at(&watch, start);
	assert_int_equal(watch.count, 1);
	assert_false(changed(&watch));
	map(start, other, 0);
	assert_int_equal(changed(&watch), !watch.unknown);
	watch_code_at(&watch, start);
	assert_false(changed(&watch));
	map(start, other, BYTES);
	assert_int_equal(changed(&watch), !watch.unknown);
	watch_code_at(&watch, start);
	munmap(start, BYTES);
	assert_int_equal(changed(&watch), !watch.unknown);
	code_watch_deinit(&watch);
	fclose(one);
	fclose(other);
}

static void test_what_is_not_watched(void **state)
{
	struct mapping anonymous = {.start = 0x1000, .end = 0x2000, .executable = true};
	struct code_watch watch;

	(void)state;
	code_watch_init(&watch);
	code_watch_add(&watch, &anonymous);
	assert_int_equal(watch.count, 0);
	assert_false(changed(&watch));
	for (uint64_t i = 1; i < 2 * CODE_WATCH_MAX; i++)
		code_watch_add(&watch, &(struct mapping){.start = i << 12, .inode = i});
	assert_int_equal(watch.count, CODE_WATCH_MAX);
	code_watch_deinit(&watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_another_file),
	    cmocka_unit_test(test_what_is_not_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
