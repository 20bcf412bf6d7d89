// SPDX-License-Identifier: MIT
// other_stacks, snapshot_hint: places outside a copy that walks needed, and copies that hold them.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch.h"
#include "maps.h"
#include "memory.h"
#include "other_stacks.h"
#include "snapshot.h"
#include "unit.h"

enum { STACK_WORDS = 1 << 14, STACK_BYTES = STACK_WORDS * 8 };

// Two "stacks" of this process: it copies itself.
static uint64_t own[STACK_WORDS], other[1 << 18];

static uint64_t address_of(const uint64_t *word)
{
	return (uint64_t)(uintptr_t)word;
}

struct world {
	struct maps maps;
	struct registers registers;
	struct snapshot_buffer buffer;
	struct snapshot_hint hint;
	struct snapshot snapshot;
};

static void capture(struct world *world)
{
	snapshot_buffer_reset(&world->buffer);
	assert_true(snapshot_capture(getpid(), ARCH_NATIVE, &world->registers, &world->maps,
	                             &world->hint, &world->buffer, &world->snapshot));
}

static int set_up(void **state)
{
	struct world *world = memory_alloc_zeroed(1, sizeof(*world));

	*state = world;
	memset(own, 1, sizeof(own));
	memset(other, 2, sizeof(other));
	registers_set(&world->registers, ARCH_NATIVE->sp, address_of(&own[STACK_WORDS / 2]));
	world->hint.guess_bytes = STACK_BYTES / 4;
	return !maps_read(&world->maps, getpid(), getpid()) ||
	       !snapshot_buffer_init(&world->buffer);
}

static int tear_down(void **state)
{
	struct world *world = *state;

	maps_deinit(&world->maps);
	snapshot_buffer_deinit(&world->buffer);
	free(world->hint.others);
	free(world);
	return 0;
}

static bool holds(const struct world *world, const uint64_t *word)
{
	uint64_t value;

	return snapshot_read(&world->snapshot, address_of(word), 8, &value) && value == *word;
}

// What was not copied is copied from then on; an ordinary thread has no such places.
static void test_copies(void **state)
{
	struct world *world = *state;
	struct snapshot_hint *hint = &world->hint;
	const uint64_t *word = &other[STACK_WORDS];

	capture(world);
	snapshot_hint_others(hint, &world->snapshot, 0, true);
	snapshot_hint_others(hint, &world->snapshot, address_of(&own[STACK_WORDS / 2]), false);
	assert_null(hint->others);
	assert_false(snapshot_hint_knows_more(hint, &world->snapshot));
	assert_false(holds(world, word));
	snapshot_hint_others(hint, &world->snapshot, address_of(word), false);
	assert_true(snapshot_hint_knows_more(hint, &world->snapshot));
	capture(world);
	assert_false(snapshot_hint_knows_more(hint, &world->snapshot));
	assert_true(holds(world, word));
	assert_true(hint->others->items[0].was_read);
	assert_int_equal(world->snapshot.n_regions, 2);
	assert_int_equal(snapshot_find_region(&world->snapshot, address_of(word)), 1);
	// Nothing is where it says: the copy goes without it.
	other_stacks_learn(&hint->others, 1ull << 50);
	capture(world);
	assert_int_equal(world->snapshot.n_regions, 2);
}

// A place grows while walks end just above or below it.
static void test_grows(void **state)
{
	struct world *world = *state;
	struct other_stacks **others = &world->hint.others;
	const uint64_t start = 1 << 30;

	other_stacks_learn(others, start);
	assert_int_equal((*others)->items[0].bytes, OTHER_STACKS_FIRST_BYTES);
	other_stacks_learn(others, start + OTHER_STACKS_FIRST_BYTES);
	assert_int_equal((*others)->n, 1);
	const uint32_t bytes = (*others)->items[0].bytes, n_learned = (*others)->n_learned;
	assert_true(bytes > OTHER_STACKS_FIRST_BYTES);
	other_stacks_learn(others, start + bytes - 8); // it is there, and cannot be read
	assert_int_equal((*others)->n_learned, n_learned);
	other_stacks_learn(others, start - 64);
	assert_int_equal((*others)->items[0].start, start - 64);
	assert_int_equal((*others)->items[0].bytes, bytes + 64);
	for (int i = 0; i < 100; i++)
		other_stacks_learn(others, (*others)->items[0].start + (*others)->items[0].bytes);
	assert_in_range((*others)->items[0].bytes, bytes, OTHER_STACKS_MAX_BYTES);
}

// What no walk reads any more is dropped, the sooner the less often it was read.
static void test_forgets(void **state)
{
	struct world *world = *state;
	struct other_stacks **others = &world->hint.others;

	for (uint64_t i = 1; i < 3 * OTHER_STACKS_MAX; i++)
		other_stacks_learn(others, i << 32);
	assert_int_equal((*others)->n, OTHER_STACKS_MAX);
	const uint64_t read = (*others)->items[1].start;
	(*others)->items[1].was_read = true;
	for (int i = 0; i < 6; i++)
		other_stacks_note_walk(*others);
	assert_int_equal((*others)->n, 1);
	assert_int_equal((*others)->items[0].start, read);
	for (int i = 0; i < 100; i++)
		other_stacks_note_walk(*others);
	assert_int_equal((*others)->n, 0);
}

// After many walks that were not whole, no other look is worth it.
static void test_looks_again(void **state)
{
	struct world *world = *state;
	struct snapshot_hint *hint = &world->hint;

	capture(world);
	assert_true(snapshot_hint_may_look_again(hint));
	for (uint64_t i = 1; i < 100; i++)
		snapshot_hint_others(hint, &world->snapshot, i << 32, false);
	assert_false(snapshot_hint_may_look_again(hint));
	snapshot_hint_others(hint, &world->snapshot, 0, true);
	assert_true(snapshot_hint_may_look_again(hint));
}

// A copy that ends before its stack does grows; memory far from it is another stack's.
static void test_goes_on(void **state)
{
	struct world *world = *state;
	struct snapshot *snapshot = &world->snapshot;

	capture(world);
	const uint64_t end = snapshot->regions[0].start + snapshot->regions[0].size;
	snapshot->stack_bytes = 0;
	assert_true(snapshot_goes_on_at(snapshot, 0)); // not known
	assert_true(snapshot_goes_on_at(snapshot, end + 64));
	assert_false(snapshot_goes_on_at(snapshot, end + (4 << 20)));
	assert_false(snapshot_goes_on_at(snapshot, end - (4 << 20)));
	snapshot->stack_bytes = 8 << 20;
	assert_true(snapshot_goes_on_at(snapshot, end + (4 << 20)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_copies, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_grows, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_forgets, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_looks_again, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_goes_on, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
