// SPDX-License-Identifier: MIT
// address_space: of this process, when its maps are read.
#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "address_space.h"
#include "clock.h"
#include "memory.h"
#include "module.h"
#include "unit.h"

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

// Tells the kernel that this program's code starts elsewhere, and changes nothing else of it.
static void set_start_code(uint64_t start_code)
{
	enum { STAT_BYTES = 4096, STATE = 3, END_CODE = 27, START_STACK = 28, START_DATA = 45 };
	struct prctl_mm_map map = {
	    .start_code = start_code,
	    .brk = (uintptr_t)sbrk(0),
	    .exe_fd = UINT32_MAX,
	};
	__u64 *const fields[] = {&map.start_data, &map.end_data,  &map.start_brk, &map.arg_start,
	                         &map.arg_end,    &map.env_start, &map.env_end};
	char text[STAT_BYTES] = "";
	_cleanup_close_ int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	char *place = strrchr(text, ')') + 1;
	for (int i = STATE; i < START_DATA + 7; i++) {
		place = strchr(place, ' ') + 1;
		const uint64_t value = strtoull(place, NULL, 10);
		if (i == END_CODE)
			map.end_code = value;
		else if (i == START_STACK)
			map.start_stack = value;
		else if (i >= START_DATA)
			*fields[i - START_DATA] = value;
	}
	assert_return_code(prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0UL), errno);
}

// Maps are read in the middle of an exec: whole, but the kernel does not tell yet where the program
// is.
static void test_start_code_that_comes_late(void **state)
{
	const uint64_t start_code = ((struct address_space *)*state)->start_code;
	struct address_space space;

	set_start_code(0x10000);
	address_space_init(&space, &modules, getpid());
	modules.program = NULL;
	address_space_update(&space, getpid(), clock_now_ns(), true);
	assert_null(modules.program);
	set_start_code(start_code);
	update_at(&space, clock_now_ns());
	assert_non_null(modules.program);
	assert_non_null(strstr(modules.program->path, "test_address_space"));
	address_space_deinit(&space);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_maps_are_read_seldom),
	    TEST(test_code_that_is_new),
	    TEST(test_start_code_that_comes_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
