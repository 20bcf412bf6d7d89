// SPDX-License-Identifier: MIT
// code_watch: of this process's own mappings.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "code_watch.h"
#include "proc.h"
#include "unit.h"

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

static bool holds(struct code_watch *watch)
{
	return code_watch_is_valid(watch, getpid(), getpid());
}

static void watch_code_at(struct code_watch *watch, const void *start)
{
	struct maps maps = {0};

	assert_true(maps_read(&maps, getpid(), getpid()));
	code_watch_clear(watch);
	assert_true(code_watch_add(watch, maps_find(&maps, (uintptr_t)start), getpid(), getpid()));
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
	assert_int_equal(holds(&watch), !watch.unknown);
	map(start, other, 0);
	assert_int_equal(changed(&watch), !watch.unknown);
	assert_false(holds(&watch));
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

// It has changed since the maps were read, and is seen for the first time.
static void test_changed_before_it_was_seen(void **state)
{
	FILE *one = make_file(), *other = make_file();
	void *start = map(NULL, one, 0);
	struct maps maps = {0};
	struct code_watch watch;

	(void)state;
	code_watch_init(&watch);
	assert_true(maps_read(&maps, getpid(), getpid()));
	map(start, other, 0);
	const bool is_there =
	    code_watch_add(&watch, maps_find(&maps, (uintptr_t)start), getpid(), getpid());
	assert_int_equal(is_there, watch.unknown);
	maps_deinit(&maps);
	code_watch_deinit(&watch);
	fclose(one);
	fclose(other);
}

// Code of a program that is gone, as by an exec after the copy, was where the maps say.
static void test_gone(void **state)
{
	const struct mapping code = {.start = 0x1000, .end = 0x2000, .executable = true};
	const int child = fork();
	struct code_watch watch;

	(void)state;
	if (child == 0)
		_exit(pause());
	assert_true(child > 0);
	code_watch_init(&watch);
	watch.maps_fd = proc_open(child, child, "maps");
	assert_true(watch.maps_fd >= 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(code_watch_add(&watch, &code, child, child));
	assert_false(code_watch_is_valid(&watch, child, child));
	code_watch_deinit(&watch);
}

static void test_what_is_not_watched(void **state)
{
	FILE *file = make_file();
	void *start = map(NULL, file, 0);
	struct code_watch watch;

	(void)state;
	code_watch_init(&watch);
	for (uint64_t i = 1; i <= CODE_WATCH_MAX + 1; i++) {
		assert_false(watch.partial);
		code_watch_add(&watch, &(struct mapping){.start = i << 12}, 0, 0); // nobody's
	}
	assert_int_equal(watch.count, CODE_WATCH_MAX);
	assert_true(watch.partial);
	watch_code_at(&watch, start);
	assert_int_equal(holds(&watch), !watch.unknown);
	code_watch_leave_out(&watch);
	assert_false(holds(&watch));
	code_watch_deinit(&watch);
	fclose(file);
}

// Each of them is looked at each time, whichever it is.
static void test_one_of_many(void **state)
{
	FILE *one = make_file(), *other = make_file();
	void *starts[CODE_WATCH_MAX];
	struct maps maps = {0};
	struct code_watch watch;

	(void)state;
	code_watch_init(&watch);
	for (size_t i = 0; i < CODE_WATCH_MAX; i++)
		starts[i] = map(NULL, one, 0);
	for (size_t i = 0; i < CODE_WATCH_MAX; i++) {
		assert_true(maps_read(&maps, getpid(), getpid()));
		code_watch_clear(&watch);
		for (size_t j = 0; j < CODE_WATCH_MAX; j++)
			code_watch_add(&watch, maps_find(&maps, (uintptr_t)starts[j]), getpid(),
			               getpid());
		map(starts[i], other, 0);
		assert_int_equal(changed(&watch), !watch.unknown);
	}
	maps_deinit(&maps);
	code_watch_deinit(&watch);
	for (size_t i = 0; i < CODE_WATCH_MAX; i++)
		munmap(starts[i], BYTES);
	fclose(one);
	fclose(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_another_file), cmocka_unit_test(test_changed_before_it_was_seen),
	    cmocka_unit_test(test_gone),         cmocka_unit_test(test_what_is_not_watched),
	    cmocka_unit_test(test_one_of_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
