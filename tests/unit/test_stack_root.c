// SPDX-License-Identifier: MIT
// stack_root: which stack pointers are at the top of a stack, in mappings of this process.
#include <sys/mman.h>
#include <unistd.h>

#include "address_space.h"
#include "clock.h"
#include "memory.h"
#include "module.h"
#include "stack_root.h"
#include "unit.h"

enum { PAGE = 4096, STACK = 0x70000000, END = STACK + 4 * PAGE };

struct world {
	struct modules modules;
	struct address_space space;
};

static int set_up(void **state)
{
	struct world *world = memory_alloc_zeroed(1, sizeof(*world));

	assert_ptr_equal(mmap((void *)(uintptr_t)STACK, END - STACK, PROT_READ,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
	                 (void *)(uintptr_t)STACK);
	address_space_init(&world->space, &world->modules, getpid());
	address_space_update(&world->space, getpid(), clock_now_ns(), true);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	address_space_deinit(&world->space);
	modules_deinit(&world->modules);
	munmap((void *)(uintptr_t)STACK, END - STACK);
	free(world);
	return 0;
}

static void test_top(void **state)
{
	// `start`: SP where the program was entered; `tls`: the thread pointer.
	static const struct {
		uint64_t sp, start, tls;
		bool is_top;
	} known[] = {
	    // The end of the mapping.
	    {END, 0, 0, true},
	    {END - 256, 0, 0, true},
	    {END - 264, 0, 0, false},
	    {END - 256, 0, END - 64, true},
	    // Between two pages: a fiber's stack.
	    {STACK + PAGE, 0, 0, true},
	    {STACK + PAGE + 8, 0, 0, false},
	    {STACK + PAGE, END + PAGE, END + 64, true},
	    {STACK + PAGE, STACK - 8, STACK - 8, true},
	    {STACK + PAGE, END, END, true},
	    // The same on the program's first stack, and on a thread's.
	    {STACK + PAGE, END - 2048, 0, false},
	    {STACK + PAGE, 0, END - 2048, false},
	    {STACK + PAGE, STACK, 0, false},
	    {STACK + PAGE, 0, END - 1, false},
	    // Where the program was entered.
	    {STACK + PAGE, STACK + PAGE, 0, true},
	    {STACK + PAGE + 64, STACK + PAGE, 0, true},
	    {STACK + PAGE + 72, STACK + PAGE, 0, false},
	};
	struct world *world = *state;

	for (size_t i = 0; i < array_size(known); i++) {
		world->space.start_stack = known[i].start;
		assert_int_equal(stack_root_is_top(&world->space, known[i].sp, known[i].tls),
		                 known[i].is_top);
	}
	assert_false(world->space.stale);
}

static void test_no_mapping(void **state)
{
	struct world *world = *state;

	assert_false(stack_root_is_top(&world->space, STACK - PAGE, 0));
	assert_true(world->space.stale);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_top, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_no_mapping, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
