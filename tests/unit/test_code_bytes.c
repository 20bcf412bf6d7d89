// SPDX-License-Identifier: MIT
// code_bytes: of this process's own memory.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "address_space.h"
#include "clock.h"
#include "code_bytes.h"
#include "module.h"
#include "unit.h"

enum { SIZE = 1 << 18 };

static struct modules modules;
static struct address_space space;
static struct code_blocks *blocks;
static uint8_t *code;

static int set_up(void **state)
{
	(void)state;
	code = mmap(NULL, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	            0);
	assert_ptr_not_equal(code, MAP_FAILED);
	memset(code, 0x90, SIZE);
	address_space_init(&space, &modules, getpid());
	address_space_update(&space, getpid(), clock_now_ns(), true);
	blocks = code_blocks_create();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	code_blocks_destroy(blocks);
	address_space_deinit(&space);
	modules_deinit(&modules);
	munmap(code, SIZE);
	return 0;
}

static void add(struct code_notes *notes, size_t at, size_t size)
{
	code_notes_add(notes, (uintptr_t)code + at, code + at, size);
}

static bool hold(const struct code_bytes *bytes)
{
	return code_bytes_are_valid(bytes, blocks, &space);
}

static bool hold_when_updated(const struct code_bytes *bytes)
{
	space.updated_ns++;
	return hold(bytes);
}

static void test_other_code(void **state)
{
	struct code_notes notes = {.size = 0};

	(void)state;
	add(&notes, 4090, 10); // across two pages
	add(&notes, 100, 3);
	add(&notes, 103, 4);
	add(&notes, 103, 4);
	assert_int_equal(notes.size, 17);
	const struct code_bytes bytes = code_notes_finish(&notes);
	assert_int_equal(bytes.n, 2);
	assert_true(hold(&bytes));
	assert_true(hold_when_updated(&bytes));
	for (const size_t *at = (const size_t[]){100, 106, 4090, 4099, 0}; *at; at++) {
		code[*at] = 0xc3;
		assert_true(hold(&bytes)); // it is looked at once after each update
		assert_false(hold_when_updated(&bytes));
		code[*at] = 0x90;
		assert_true(hold_when_updated(&bytes));
	}
	code[99] = code[107] = code[4089] = code[4100] = 0xc3;
	assert_true(hold_when_updated(&bytes));
	assert_int_equal(munmap(code + 4096, SIZE - 4096), 0);
	assert_false(hold_when_updated(&bytes));
}

// What is beyond the limits is left out, and nothing else.
static void test_much_code(void **state)
{
	struct code_notes notes = {.size = 0}, one = {.size = 0}, none = {.size = 0};
	const struct code_bytes nothing = code_notes_finish(&none);

	(void)state;
	assert_true(hold(&nothing));
	for (size_t i = 0; i < 2 * CODE_BYTES_RANGES; i++)
		add(&notes, i * 600, 15);
	const struct code_bytes many = code_notes_finish(&notes);
	assert_int_equal(many.n, CODE_BYTES_RANGES);
	assert_true(hold(&many));
	for (size_t i = 0; i < 400; i++)
		add(&one, i * 5, 5);
	const struct code_bytes large = code_notes_finish(&one);
	assert_int_equal(large.n, 1);
	assert_in_range(large.ranges[0].size, CODE_BYTES_MAX - 5, CODE_BYTES_MAX);
	assert_true(hold(&large));
	code[CODE_BYTES_MAX - 5] = 0xc3;
	assert_false(hold_when_updated(&large));
}

// Many rules, in more blocks than are kept.
static void test_many_places(void **state)
{
	enum { N = 1000, EACH = SIZE / N };
	static struct code_bytes bytes[N];

	(void)state;
	for (size_t i = 0; i < N; i++) {
		struct code_notes notes = {.size = 0};
		add(&notes, i * EACH, EACH);
		bytes[i] = code_notes_finish(&notes);
	}
	for (int round = 0; round < 3; round++) {
		const size_t changed = round * 499;
		code[changed * EACH] = 0xcc;
		space.updated_ns++;
		for (size_t i = 0; i < N; i++)
			assert_int_equal(hold(&bytes[i]), i != changed);
		code[changed * EACH] = 0x90;
	}
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(test_other_code),
	    TEST(test_much_code),
	    TEST(test_many_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
