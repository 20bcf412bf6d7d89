// SPDX-License-Identifier: MIT
// address_space: of this process, when its maps are read.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "address_space.h"
#include "clock.h"
#include "memory.h"
#include "module.h"

static struct modules modules;

static int set_up(void **state)
{
	struct address_space *space = memory_alloc_zeroed(1, sizeof(*space));

	modules = (struct modules){0};
	address_space_init(space, &modules, getpid());
	address_space_update(space, getpid(), clock_now_ns(), true);
	*state = space;
	return 0;
}

static int tear_down(void **state)
{
	address_space_deinit(*state);
	modules_deinit(&modules);
	free(*state);
	return 0;
}

static void *map_code(void *at, off_t page)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *start = mmap(at, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd,
	                   page * (off_t)size);

	assert_ptr_not_equal(start, MAP_FAILED);
	return start;
}

// Lets a reading be due.
static void update_at(struct address_space *space, int64_t now_ns)
{
	space->cost_ns = 1;
	address_space_update(space, getpid(), now_ns, false);
}

// Sees the code, and lets everything that this takes be known. Returns how often the maps were
// read.
static uint64_t see_code(struct address_space *space, const void *code, int64_t now_ns)
{
	for (int i = 0; i < 3; i++) {
		address_space_update(space, getpid(), now_ns, true);
		address_space_resolve(space, (uintptr_t)code);
	}
	assert_false(space->stale);
	return space->n_reads;
}

// Code that was seen is looked at by itself, where the kernel tells of it: the maps are read once a
// second, but at once when other code takes its place, or if they may explain what was seen.
static void test_maps_are_read_seldom(void **state)
{
	struct address_space *space = *state;
	void *code = map_code(NULL, 0);
	const int64_t now_ns = space->updated_ns;
	uint64_t n_reads = see_code(space, code, now_ns);

	for (int i = 1; i < 10; i++) {
		update_at(space, now_ns + i * (NS_PER_SECOND / 10));
		assert_int_equal(space->n_reads, n_reads + (space->watch.unknown ? i : 0));
	}
	n_reads = space->n_reads;
	update_at(space, now_ns + NS_PER_SECOND);
	assert_int_equal(space->n_reads, n_reads + 1);
	space->unsure = true;
	update_at(space, now_ns + NS_PER_SECOND + 1000);
	assert_int_equal(space->n_reads, n_reads + 2);
	const uint32_t generation = space->generation;
	map_code(code, 1);
	update_at(space, now_ns + NS_PER_SECOND + 2000);
	assert_true(space->generation > generation);
	munmap(code, (size_t)sysconf(_SC_PAGESIZE));
}

// Other code takes the place of code that was not seen yet.
static void test_code_that_is_new(void **state)
{
	struct address_space *space = *state;
	void *code = map_code(NULL, 0);

	see_code(space, code, space->updated_ns);
	code_watch_clear(&space->watch);
	map_code(code, 1);
	address_space_resolve(space, (uintptr_t)code);
	assert_int_equal(space->stale, !space->watch.unknown);
	munmap(code, (size_t)sysconf(_SC_PAGESIZE));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_maps_are_read_seldom),
	    TEST(test_code_that_is_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
