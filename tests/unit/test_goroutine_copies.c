// SPDX-License-Identifier: MIT
// goroutine_copies: hand-made goroutines in this program's own memory.
#include <string.h>
#include <unistd.h>

#include "go_program.h"
#include "goroutine_copies.h"
#include "resident.h"
#include "unit.h"

enum { MINOR = 26, STACK_WORDS = 32, FIRST_USED = 8, GOID = 7, SEQ = 3 };

static uint8_t g[1024] __attribute__((aligned(8)));
static uint64_t stack[STACK_WORDS];
static char reasons[GO_MAX_REASONS][GO_REASON_BYTES];
static struct go_program program = {.minor = MINOR, .reasons = reasons};
static struct resident resident;

static void set(uint16_t offset, uint64_t value)
{
	memcpy(g + offset, &value, sizeof(value));
}

static uint64_t at(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

// One that is ready to run.
static void make_goroutine(uint64_t goid, uint8_t seq)
{
	const struct go_offsets *offsets = &program.offsets;

	memset(g, 0, sizeof(g));
	set(offsets->low, at(stack));
	set(offsets->high, at(stack + STACK_WORDS));
	set(offsets->sp, at(stack + FIRST_USED));
	set(offsets->pc, 0x1234);
	set(offsets->pc + sizeof(uint64_t), at(g)); // sched.g
	set(offsets->status, GOROUTINE_RUNNABLE);
	set(offsets->goid, goid);
	g[offsets->tracking_seq] = seq;
}

static int set_up(void **state)
{
	(void)state;
	if (!go_offsets_of_version(MINOR, &program.offsets))
		return -1;
	program.g_bytes = go_offsets_g_bytes(&program.offsets);
	resident_init(&resident, getpid());
	for (size_t i = 0; i < STACK_WORDS; i++)
		stack[i] = i;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	resident_deinit(&resident);
	return 0;
}

// Reads a goroutine, has another one or another time of the same take its place, and copies it.
static void copy(struct goroutine_copies *copies, uint64_t goid, uint8_t seq)
{
	const struct go_memory memory = {getpid(), &resident};
	struct task before;

	make_goroutine(GOID, SEQ);
	assert_true(goroutine_read(&program, &memory, at(g), &before));
	make_goroutine(goid, seq);
	assert_true(goroutine_copies_add(copies, &before, 0));
	goroutine_copies_make(copies, &program, &memory);
}

static void test_same(void **state)
{
	struct goroutine_copies copies = {0};

	(void)state;
	copy(&copies, GOID, SEQ);
	const struct snapshot_region *region = &copies.items[0].copy.snapshot.regions[0];
	assert_int_equal(copies.items[0].copy.result, TASK_COPIED);
	assert_int_equal(region->start, at(stack + FIRST_USED));
	assert_int_equal(region->size, sizeof(*stack) * (STACK_WORDS - FIRST_USED));
	assert_memory_equal(region->bytes, stack + FIRST_USED, region->size);
	goroutine_copies_deinit(&copies);
}

static void test_moved(void **state)
{
	struct goroutine_copies copies = {0};

	(void)state;
	copy(&copies, GOID, SEQ + 1);
	assert_int_equal(copies.items[0].copy.result, TASK_MOVED);
	assert_int_equal(copies.items[0].copy.now.seq, SEQ + 1);
	goroutine_copies_deinit(&copies);
}

// The runtime gives the structure of one that has ended to the next one: what was copied, or will
// be, is that one's.
static void test_replaced(void **state)
{
	struct goroutine_copies copies = {0};

	(void)state;
	copy(&copies, GOID + 1, SEQ);
	assert_int_equal(copies.items[0].copy.result, TASK_ENDED);
	goroutine_copies_deinit(&copies);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_same),
	    cmocka_unit_test(test_moved),
	    cmocka_unit_test(test_replaced),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
