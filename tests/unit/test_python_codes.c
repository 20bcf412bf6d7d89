// SPDX-License-Identifier: MIT
// python_codes: what is seen of code objects in a stop, of some that this test has made in its own
// memory in the layout of 3.11, where a key has the hashes of the name and the file.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "python.h"
#include "runtimes.h"
#include "unit.h"

enum { N_CODES = 40, CODE_BYTES = 192, STRING_BYTES = 64, N_FILES = 3, LENGTH = 7 };

struct world {
	struct resident resident;
	struct runtimes_setup setup;
	struct python python;
	uint8_t codes[N_CODES][CODE_BYTES];
	uint8_t names[N_CODES][STRING_BYTES], files[N_FILES][STRING_BYTES];
	struct python_code_seen seen[N_CODES], again[N_CODES];
	struct python_piece asked[PYTHON_MAX_PIECES];
	struct python_pieces pieces;
};

static uint64_t address_of(const uint8_t *object)
{
	return (uint64_t)(uintptr_t)object;
}

static void put(uint8_t *object, uint32_t offset, uint64_t word)
{
	memcpy(object + offset, &word, sizeof(word));
}

static void make_string(const struct world *world, uint8_t *string, uint64_t hash)
{
	put(string, world->python.layout.string_length, LENGTH);
	put(string, world->python.layout.string_length + 8, hash);
}

// Which file the i-th function is of: several follow each other, and the first one comes again.
static uint8_t *file_of(struct world *world, size_t i)
{
	return world->files[i / 6 % N_FILES];
}

static void make_code(struct world *world, size_t i)
{
	const struct python_layout *layout = &world->python.layout;
	uint8_t *code = world->codes[i];

	put(code, layout->object_type, world->python.code_type);
	put(code, layout->code_qualname, address_of(world->names[i]));
	put(code, layout->code_file, address_of(file_of(world, i)));
	put(code, layout->code_lines, 1000 + i);
	make_string(world, world->names[i], 100 + i);
}

static struct world *create(void)
{
	struct world *world = memory_alloc_zeroed(1, sizeof(*world));

	resident_init(&world->resident, getpid());
	world->setup.resident = &world->resident;
	world->python.setup = &world->setup;
	world->python.layout = *python_layout_of(11);
	world->python.code_type = 0x1234;
	for (size_t i = 0; i < N_FILES; i++)
		make_string(world, world->files[i], 10 + i);
	for (size_t i = 0; i < N_CODES; i++)
		make_code(world, i);
	return world;
}

static void destroy(struct world *world)
{
	resident_deinit(&world->resident);
	free(world);
}

// Looks at all of them; with a plan, if there is one.
static void look(struct world *world, const struct python_plan *plan, struct python_code_seen *seen)
{
	uint8_t *scratch = memory_alloc(1 << 18);

	for (size_t i = 0; i < N_CODES; i++)
		seen[i] = (struct python_code_seen){.address = address_of(world->codes[i])};
	world->pieces = (struct python_pieces){
	    .resident = &world->resident, .tid = gettid(), .asked = world->asked};
	python_pieces_read_plan(&world->pieces, plan, scratch, 1 << 18);
	python_codes_look(&world->python, &world->pieces, seen, N_CODES);
	free(scratch);
}

static bool has_word(const struct python_code_seen *seen, uint64_t word)
{
	for (size_t i = 0; i < PYTHON_KEY_WORDS; i++)
		if (seen->key[i] == word)
			return true;
	return false;
}

// Each has its own name's hash and its file's, read one by one or as planned.
static void test_keys(void **state)
{
	struct world *world = create();
	struct python_plan *plan;

	(void)state;
	look(world, NULL, world->seen);
	for (size_t i = 0; i < N_CODES; i++) {
		assert_true(world->seen[i].is_read);
		assert_true(has_word(&world->seen[i], 100 + i));
		assert_true(has_word(&world->seen[i], 10 + i / 6 % N_FILES));
	}
	plan = python_plan_make(NULL, world->asked, world->pieces.n_asked);
	look(world, plan, world->again);
	assert_memory_equal(world->seen, world->again, sizeof(world->seen));
	free(plan);
	destroy(world);
}

// A string that is another one by now, at the same address, changes the keys of those that have it,
// and of no other.
static void test_changes(void **state)
{
	struct world *world = create();

	(void)state;
	look(world, NULL, world->seen);
	struct python_plan *plan = python_plan_make(NULL, world->asked, world->pieces.n_asked);
	make_string(world, world->names[17], 500);
	make_string(world, world->files[2], 600);
	look(world, plan, world->again);
	for (size_t i = 0; i < N_CODES; i++) {
		const bool changes = i == 17 || file_of(world, i) == world->files[2];
		assert_int_equal(
		    memcmp(&world->seen[i], &world->again[i], sizeof(world->seen[i])) != 0,
		    changes);
	}
	free(plan);
	destroy(world);
}

// One that is not a code object, or has no name, does not take its neighbours along.
static void test_damaged(void **state)
{
	struct world *world = create();
	const struct python_layout *layout = &world->python.layout;

	(void)state;
	put(world->codes[1], layout->object_type, 0x4321);
	put(world->codes[20], layout->code_qualname, 8);
	put(world->codes[30], layout->code_file, 8);
	look(world, NULL, world->seen);
	for (size_t i = 0; i < N_CODES; i++)
		assert_int_equal(world->seen[i].is_read, i != 1 && i != 20 && i != 30);
	assert_true(has_word(&world->seen[2], 10));
	assert_true(has_word(&world->seen[21], 10));
	destroy(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_keys),
	    cmocka_unit_test(test_changes),
	    cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
