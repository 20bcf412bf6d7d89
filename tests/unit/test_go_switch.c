// SPDX-License-Identifier: MIT
// go_thread and go_switch: hand-made threads of Go, in this program's own memory, and walks over
// their stacks.
#include <string.h>
#include <unistd.h>

#include "arch.h"
#include "go_switch.h"
#include "go_thread.h"
#include "memory.h"
#include "snapshot.h"
#include "unit.h"

// DWARF's register numbers.
enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, RIP = 16 };

enum {
	// Words of struct g.
	LOW = 0,
	HIGH = 1,
	G_M = 6,
	G_SP = 7,
	G_PC = 8,
	G_SELF = 9,

	CURG = 23, // the word of struct m that has the goroutine
	STACK_WORDS = 32,
};

static const struct go_layout LAYOUT = {.tls = -8, .curg = CURG * 8};

struct world {
	uint64_t tls[2]; // g, and where the thread pointer points to
	uint64_t m[CURG + 1], own[10], goroutine[10], signals[10];
	uint64_t own_stack[STACK_WORDS], goroutine_stack[STACK_WORDS];
	struct snapshot snapshot;
	struct go_thread go;
	struct go_walk walk;
	struct registers registers;
};

static uint64_t at(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static void fill_g(struct world *world, uint64_t *g, uint64_t *stack, size_t sp)
{
	g[LOW] = at(stack);
	g[HIGH] = at(stack + STACK_WORDS);
	g[G_M] = at(world->m);
	g[G_SP] = at(stack + sp);
	g[G_PC] = 0x1234;
	g[G_SELF] = at(g);
}

static int set_up(void **state)
{
	struct world *world = memory_alloc_zeroed(1, sizeof(*world));

	fill_g(world, world->own, world->own_stack, 24);
	fill_g(world, world->goroutine, world->goroutine_stack, 8);
	world->signals[G_M] = at(world->m);
	world->m[0] = at(world->own);
	world->m[CURG] = at(world->goroutine);
	world->tls[0] = at(world->own);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static bool read_thread(struct world *world)
{
	return go_thread_read(getpid(), NULL, at(&world->tls[1]), &LAYOUT, &world->go);
}

static void test_read(void **state)
{
	struct world *world = *state;
	const struct go_thread *go = &world->go;
	uint64_t *const runs_as[] = {world->own, world->goroutine, world->signals};

	for (size_t i = 0; i < array_size(runs_as); i++) {
		world->tls[0] = at(runs_as[i]);
		assert_true(read_thread(world));
		assert_int_equal(go->g, at(runs_as[i]));
		assert_int_equal(go->m, at(world->m));
		assert_int_equal(go->own.address, at(world->own));
		assert_int_equal(go->own.sp, at(world->own_stack + 24));
		assert_int_equal(go->goroutine.address, at(world->goroutine));
		assert_int_equal(go->goroutine.low, at(world->goroutine_stack));
		assert_int_equal(go->goroutine.high, at(world->goroutine_stack + STACK_WORDS));
		assert_int_equal(go->goroutine.sp, at(world->goroutine_stack + 8));
		assert_int_equal(go->goroutine.pc, 0x1234);
	}
}

static void test_no_goroutine(void **state)
{
	struct world *world = *state;

	world->m[CURG] = 0;
	assert_true(read_thread(world));
	assert_int_equal(world->go.goroutine.address, 0);
	assert_true(go_thread_is_valid(getpid(), NULL, &world->go));

	// Or one that the thread is about to put aside.
	world->m[CURG] = at(world->goroutine);
	world->goroutine[G_M] = 0;
	assert_true(read_thread(world));
	assert_int_equal(world->go.goroutine.address, 0);
}

// A stack pointer outside of its stack is that of some other time.
static void test_stack_pointer_elsewhere(void **state)
{
	struct world *world = *state;
	const uint64_t bad[] = {0, 1, at(world->goroutine_stack) - 8,
	                        at(world->goroutine_stack + STACK_WORDS), UINT64_MAX - 7};

	for (size_t i = 0; i < array_size(bad); i++) {
		world->goroutine[G_SP] = bad[i];
		assert_true(read_thread(world));
		assert_int_equal(world->go.goroutine.sp, 0);
	}
}

// Each word that leads somewhere leads elsewhere in turn: nothing of it is believed.
static void test_does_not_fit(void **state)
{
	struct world *world = *state;
	uint64_t *const places[] = {&world->tls[0],          &world->m[0],
	                            &world->m[CURG],         &world->own[G_M],
	                            &world->goroutine[G_M],  &world->goroutine[G_SELF],
	                            &world->goroutine[HIGH], &world->own[HIGH]};
	const uint64_t bad[] = {
	    1, 8, UINT64_MAX, UINT64_MAX - 7, at(world->own_stack), at(world->goroutine_stack) + 4};

	for (size_t i = 0; i < array_size(places); i++) {
		const uint64_t good = *places[i];
		for (size_t j = 0; j < array_size(bad); j++) {
			const bool is_bound =
			    places[i] == &world->own[HIGH] || places[i] == &world->goroutine[HIGH];
			*places[i] = is_bound && j > 1 ? UINT64_MAX - j : bad[j];
			memset(&world->go, 0, sizeof(world->go));
			assert_false(read_thread(world));
			assert_int_equal(world->go.m, 0);
		}
		*places[i] = good;
		assert_true(read_thread(world));
	}
	world->m[CURG] = at(world->own);
	assert_false(read_thread(world));
}

// The dynamic linker has put where g lies into memory; or there is nothing.
static void test_other_layouts(void **state)
{
	struct world *world = *state;
	struct go_thread *go = &world->go;
	uint64_t offset = (uint64_t)-8;
	struct go_layout layout = {.curg = CURG * 8, .tls_at = at(&offset)};

	assert_true(go_layout_is_known(&layout));
	assert_true(go_thread_read(getpid(), NULL, at(&world->tls[1]), &layout, go));
	assert_int_equal(go->goroutine.address, at(world->goroutine));
	offset = 1;
	assert_false(go_thread_read(getpid(), NULL, at(&world->tls[1]), &layout, go));
	layout.tls_at = 8;
	assert_false(go_thread_read(getpid(), NULL, at(&world->tls[1]), &layout, go));
	layout.tls_at = 0;
	assert_false(go_layout_is_known(&layout));
	assert_false(go_thread_read(getpid(), NULL, at(&world->tls[1]), &layout, go));
}

static void test_moved(void **state)
{
	struct world *world = *state;

	assert_true(read_thread(world));
	assert_true(go_thread_is_valid(getpid(), NULL, &world->go));
	world->goroutine[LOW] -= 64;
	assert_false(go_thread_is_valid(getpid(), NULL, &world->go));
	world->goroutine[LOW] += 64;
	world->goroutine[G_SP] += 8;
	assert_false(go_thread_is_valid(getpid(), NULL, &world->go));
}

// The thread, copied, in a function with that stack pointer.
static void stand(struct world *world, const uint64_t *sp)
{
	const uint64_t *const stacks[] = {world->own_stack, world->goroutine_stack};

	assert_true(read_thread(world));
	world->snapshot.n_regions = array_size(stacks);
	for (size_t i = 0; i < array_size(stacks); i++)
		world->snapshot.regions[i] = (struct snapshot_region){
		    .start = at(stacks[i]),
		    .size = sizeof(world->own_stack),
		    .bytes = (const uint8_t *)stacks[i],
		};
	world->walk = (struct go_walk){0};
	world->registers = (struct registers){0};
	registers_set(&world->registers, RSP, at(sp));
	registers_set(&world->registers, RIP, 0x4000);
	registers_set(&world->registers, RBP, 0x5000);
}

static enum go_move walk(struct world *world, enum go_switch kind, uint8_t slot, bool is_call)
{
	world->walk.go = &world->go;
	return go_switch_walk(&world->snapshot, kind, slot, is_call, &world->walk,
	                      &world->registers);
}

static void assert_at(const struct world *world, const uint64_t *sp)
{
	assert_int_equal(world->registers.value[RSP], at(sp));
	assert_int_equal(world->registers.known, 1u << RSP | 1u << RIP);
}

static void test_systemstack(void **state)
{
	struct world *world = *state;

	stand(world, world->own_stack + 24);
	assert_int_equal(walk(world, GO_SYSTEMSTACK, 0, true), GO_FRAME);
	assert_at(world, world->goroutine_stack + 8);
	assert_int_equal(world->registers.value[RIP], 0x4000);
	// What it calls before it changes the stack.
	assert_int_equal(walk(world, GO_SYSTEMSTACK, 0, true), GO_FRAME);
	assert_int_equal(world->registers.value[RSP], at(world->goroutine_stack + 8));

	world->goroutine[G_SP] = 0; // it does not wait
	stand(world, world->own_stack + 24);
	assert_int_equal(walk(world, GO_SYSTEMSTACK, 0, true), GO_UNKNOWN);
	assert_int_equal(world->registers.value[RSP], at(world->own_stack + 24));

	world->go = (struct go_thread){0};
	assert_int_equal(walk(world, GO_SYSTEMSTACK, 0, true), GO_UNKNOWN);
}

static void test_morestack(void **state)
{
	struct world *world = *state;

	stand(world, world->own_stack + 24);
	assert_int_equal(walk(world, GO_MORESTACK, 0, true), GO_CALLER);
	assert_at(world, world->goroutine_stack + 8);
	assert_int_equal(world->registers.value[RIP], 0x1234);

	// The scheduler runs, and has chosen a goroutine already, or not yet.
	stand(world, world->own_stack + 20);
	assert_int_equal(walk(world, GO_SCHEDULE, 0, true), GO_FRAME);
	assert_int_equal(world->registers.value[RSP], at(world->own_stack + 20));
	assert_int_equal(walk(world, GO_MORESTACK, 0, true), GO_ROOT);
	assert_int_equal(walk(world, GO_SYSTEMSTACK, 0, true), GO_UNKNOWN);
	world->m[CURG] = 0;
	stand(world, world->own_stack + 24);
	assert_int_equal(walk(world, GO_MORESTACK, 0, true), GO_ROOT);
	assert_int_equal(walk(world, GO_SYSTEMSTACK, 0, true), GO_UNKNOWN);
}

// The thread stands there, in the runtime's work for a goroutine with that status.
static void stand_for(struct world *world, const uint64_t *sp, enum goroutine_status status)
{
	stand(world, sp);
	world->go.goid = 7;
	world->go.status = status;
}

// A goroutine that is put aside, or was just chosen, goes on where it was left; below another
// one's, or none, nobody waits.
static void test_left(void **state)
{
	struct world *world = *state;

	stand_for(world, world->own_stack + 20, GOROUTINE_WAITING);
	assert_int_equal(walk(world, GO_MCALL, 0, true), GO_LEFT);
	assert_at(world, world->goroutine_stack + 8);
	assert_int_equal(world->registers.value[RIP], 0x1234);
	stand_for(world, world->own_stack + 20, GOROUTINE_RUNNING);
	assert_int_equal(walk(world, GO_MCALL, 0, false), GO_LEFT);
	stand_for(world, world->own_stack + 20, GOROUTINE_RUNNING);
	assert_int_equal(walk(world, GO_SCHEDULE, 0, true), GO_LEFT);
	assert_at(world, world->goroutine_stack + 8);

	// Not chosen yet: the thread runs the scheduler alone.
	stand_for(world, world->own_stack + 20, GOROUTINE_RUNNABLE);
	assert_int_equal(walk(world, GO_SCHEDULE, 0, true), GO_FRAME);
	assert_int_equal(walk(world, GO_MCALL, 0, true), GO_ROOT);
	// It waits nowhere; or a call was made on its own stack.
	world->goroutine[G_SP] = 0;
	stand_for(world, world->own_stack + 20, GOROUTINE_RUNNING);
	assert_int_equal(walk(world, GO_MCALL, 0, true), GO_ROOT);
	stand_for(world, world->goroutine_stack + 6, GOROUTINE_RUNNING);
	assert_int_equal(walk(world, GO_MCALL, 0, true), GO_FRAME);
	world->go = (struct go_thread){0};
	registers_set(&world->registers, RSP, at(world->own_stack + 20));
	assert_int_equal(walk(world, GO_MCALL, 0, true), GO_ROOT);
}

// gogo has taken the goroutine's stack pointer, and jumps next.
static void test_begun(void **state)
{
	struct world *world = *state;

	stand_for(world, world->goroutine_stack + 8, GOROUTINE_RUNNING);
	assert_int_equal(walk(world, GO_GOGO, 0, false), GO_LEFT);
	assert_at(world, world->goroutine_stack + 8);
	assert_int_equal(world->registers.value[RIP], 0x1234);
	stand_for(world, world->own_stack + 20, GOROUTINE_RUNNING);
	assert_int_equal(walk(world, GO_GOGO, 0, false), GO_FRAME);
}

// Go, C, Go, C: each leaves the other's stack where the next one goes on.
static void test_calls_both_ways(void **state)
{
	struct world *world = *state;
	uint64_t *own = world->own_stack, *goroutine = world->goroutine_stack;

	own[10] = at(goroutine + STACK_WORDS) - at(goroutine + 4); // the inner asmcgocall
	own[11] = at(world->goroutine);
	own[16] = at(own + 30); // cgocallback: where the stack was left before
	own[20] = at(goroutine + STACK_WORDS) - at(goroutine + 16);
	own[21] = at(world->goroutine);
	world->own[G_SP] = at(own + 16);
	stand(world, own + 10);
	assert_int_equal(walk(world, GO_ASMCGOCALL, 8, true), GO_FRAME);
	assert_at(world, goroutine + 4);
	registers_set(&world->registers, RSP, at(goroutine + 6));
	assert_int_equal(walk(world, GO_CGOCALLBACK, 0, true), GO_FRAME);
	assert_at(world, own + 16);
	registers_set(&world->registers, RSP, at(own + 20));
	// Not where the inner one has left the goroutine's.
	assert_int_equal(walk(world, GO_SYSTEMSTACK, 0, true), GO_UNKNOWN);
	assert_int_equal(walk(world, GO_ASMCGOCALL, 8, true), GO_FRAME);
	assert_at(world, goroutine + 16);
	registers_set(&world->registers, RSP, at(goroutine + 20));
	assert_int_equal(walk(world, GO_CGOCALLBACK, 0, true), GO_FRAME);
	assert_at(world, own + 30);
}

// cgocallback, called from C within Go's, has noted where it leaves the thread's stack, and has not
// left it, or has come back: the one below it has left it elsewhere.
static void test_cgocallback_on_its_way(void **state)
{
	struct world *world = *state;

	for (int is_call = 0; is_call < 2; is_call++) {
		world->own[G_SP] = at(world->own_stack + 4);
		world->own_stack[4] = at(world->own_stack + 20);
		stand(world, world->own_stack + 4);
		assert_int_equal(walk(world, GO_CGOCALLBACK, 0, is_call), GO_FRAME);
		assert_int_equal(world->registers.value[RSP], at(world->own_stack + 4));
		registers_set(&world->registers, RSP, at(world->goroutine_stack + 8));
		assert_int_equal(walk(world, GO_CGOCALLBACK, 0, true), GO_FRAME);
		assert_at(world, world->own_stack + 20);
		// It has not noted it yet.
		world->own[G_SP] = at(world->own_stack + 20);
		stand(world, world->own_stack + 4);
		assert_int_equal(walk(world, GO_CGOCALLBACK, 0, is_call), GO_FRAME);
		registers_set(&world->registers, RSP, at(world->goroutine_stack + 8));
		assert_int_equal(walk(world, GO_CGOCALLBACK, 0, true), GO_FRAME);
		assert_at(world, world->own_stack + 20);
	}
}

static void test_asmcgocall_does_not_fit(void **state)
{
	struct world *world = *state;
	const uint64_t depths[] = {0, 4, sizeof(world->goroutine_stack) + 8, UINT64_MAX - 7};

	for (size_t i = 0; i < array_size(depths); i++) {
		world->own_stack[10] = depths[i];
		world->own_stack[11] = at(world->goroutine);
		stand(world, world->own_stack + 10);
		assert_int_equal(walk(world, GO_ASMCGOCALL, 8, true), GO_UNKNOWN);
	}
	world->own_stack[10] = 64;
	world->own_stack[11] = at(world->own);
	assert_int_equal(walk(world, GO_ASMCGOCALL, 8, true), GO_UNKNOWN);
	assert_int_equal(walk(world, GO_ASMCGOCALL, 255, true), GO_UNKNOWN);
	assert_int_equal(walk(world, GO_ASMCGOCALL, 0, true), GO_UNKNOWN);
}

static void test_same_stack(void **state)
{
	struct world *world = *state;

	world->own_stack[10] = at(world->own_stack + 13);
	stand(world, world->own_stack + 10);
	assert_int_equal(walk(world, GO_SAME_STACK, 0, true), GO_FRAME);
	assert_at(world, world->own_stack + 13);
	world->own_stack[13] = at(world->own_stack + 13); // it goes up
	assert_int_equal(walk(world, GO_SAME_STACK, 0, true), GO_UNKNOWN);
}

static void test_saved_sp(void **state)
{
	struct world *world = *state;

	// It runs as the goroutine, on the thread's stack.
	world->tls[0] = at(world->goroutine);
	stand(world, world->own_stack + 10);
	assert_int_equal(walk(world, GO_SAVED_SP, R12, true), GO_UNKNOWN);
	registers_set(&world->registers, R12, at(world->goroutine_stack + 5));
	assert_int_equal(walk(world, GO_SAVED_SP, R12, true), GO_FRAME);
	assert_at(world, world->goroutine_stack + 5);

	// A leaf has taken it back.
	stand(world, world->goroutine_stack + 7);
	registers_set(&world->registers, R12, at(world->goroutine_stack + 5));
	assert_int_equal(walk(world, GO_SAVED_SP, R12, false), GO_FRAME);
	assert_int_equal(world->registers.value[RSP], at(world->goroutine_stack + 7));

	world->tls[0] = at(world->own);
	stand(world, world->own_stack + 10);
	registers_set(&world->registers, R12, at(world->own_stack + 13));
	assert_int_equal(walk(world, GO_SAVED_SP, R12, true), GO_FRAME);
	assert_at(world, world->own_stack + 13);
	registers_set(&world->registers, R12, at(world->own_stack + 12)); // below
	assert_int_equal(walk(world, GO_SAVED_SP, R12, true), GO_UNKNOWN);
}

// A leaf has changed the stack, or it has not.
static void test_leaf(void **state)
{
	struct world *world = *state;
	static const struct {
		enum go_switch kind;
		enum go_move on_goroutine, on_own, at_own_sp;
	} cases[] = {
	    {GO_MCALL, GO_FRAME, GO_ROOT, GO_ROOT},
	    {GO_GOGO, GO_ROOT, GO_FRAME, GO_FRAME},
	    {GO_SYSTEMSTACK, GO_FRAME, GO_FRAME, GO_FRAME},
	    {GO_MORESTACK, GO_FRAME, GO_UNKNOWN, GO_CALLER},
	    {GO_ASMCGOCALL, GO_FRAME, GO_UNKNOWN, GO_FRAME},
	    {GO_CGOCALLBACK, GO_FRAME, GO_FRAME, GO_FRAME},
	    {GO_SCHEDULE, GO_FRAME, GO_FRAME, GO_FRAME},
	    {GO_UNCLEAR, GO_UNKNOWN, GO_UNKNOWN, GO_UNKNOWN},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		stand(world, world->goroutine_stack + 6);
		assert_int_equal(walk(world, cases[i].kind, 0, false), cases[i].on_goroutine);
		stand(world, world->own_stack + 12);
		assert_int_equal(walk(world, cases[i].kind, 0, false), cases[i].on_own);
		if (cases[i].on_own == GO_FRAME)
			assert_int_equal(world->registers.value[RSP], at(world->own_stack + 12));
		stand(world, world->own_stack + 24);
		assert_int_equal(walk(world, cases[i].kind, 0, false), cases[i].at_own_sp);
	}
	stand(world, world->own_stack + 24);
	walk(world, GO_SYSTEMSTACK, 0, false);
	assert_at(world, world->goroutine_stack + 8);
	stand(world, world->own_stack + 24 - 4);
	assert_int_equal(walk(world, GO_ASMCGOCALL, 0, false), GO_UNKNOWN);
	assert_int_equal(walk(world, GO_ASMCGOCALL, 32, false), GO_FRAME);
	assert_at(world, world->goroutine_stack + 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_read, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_no_goroutine, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_stack_pointer_elsewhere, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_does_not_fit, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_other_layouts, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_moved, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_systemstack, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_morestack, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_left, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_begun, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_calls_both_ways, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_cgocallback_on_its_way, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_asmcgocall_does_not_fit, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_same_stack, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_saved_sp, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_leaf, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
