// SPDX-License-Identifier: MIT
// go_guess: hand-made goroutines in this program's own memory, with the code of a Go program. Their
// structures are those of the newest known version, or have got or lost a field somewhere.
//
//     test_go_guess GOLANG-STRIPPED
#include <fcntl.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "go_guess.h"
#include "go_program.h"
#include "go_thread.h"
#include "gopclntab.h"
#include "memory.h"
#include "module.h"
#include "resident.h"
#include "unit.h"

enum { G_WORDS = 128, STACK_WORDS = 32, N_GOROUTINES = 4, WORD = 8, REASON = 5 };

// What a version has put into its structures, or taken out of them.
struct change {
	uint16_t from; // fields from that offset on have moved
	int16_t by;
	uint64_t filling; // what is in a new field
};

static const char *path;
static struct modules modules;
static struct resident resident;
static char reasons[GO_MAX_REASONS][GO_REASON_BYTES];
static struct go_program program = {.reasons = reasons};
static uint64_t entry, creator; // of functions

static uint64_t gs[N_GOROUTINES + 1][G_WORDS]; // the last one: g0
static uint64_t m[G_WORDS], stack[STACK_WORDS], sudog[4], labels[3], label[4];
static uint64_t list[N_GOROUTINES], list_header[3];

static uint64_t at(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static void set(uint64_t *structure, uint16_t offset, const struct change *change, uint64_t value)
{
	memcpy((uint8_t *)structure + offset + (offset >= change->from ? change->by : 0), &value,
	       WORD);
}

static void set_byte(uint64_t *structure, uint16_t offset, const struct change *change,
                     uint8_t value)
{
	((uint8_t *)structure)[offset + (offset >= change->from ? change->by : 0)] = value;
}

static void make_goroutine(size_t i, enum goroutine_status status, const struct change *change)
{
	const struct go_offsets *offsets = &program.offsets;
	uint64_t *g = gs[i];

	memset(g, 0, sizeof(gs[i]));
	if (change->by > 0)
		memcpy((uint8_t *)g + change->from, &change->filling, WORD);
	set(g, offsets->low, change, at(stack));
	set(g, offsets->high, change, at(stack + STACK_WORDS));
	set(g, offsets->sp, change, at(stack + STACK_WORDS / 2));
	set(g, offsets->pc, change, entry + 1);
	set(g, offsets->pc + WORD, change, at(g)); // sched.g
	set(g, offsets->bp, change, at(stack + STACK_WORDS / 2 + 2));
	set(g, offsets->status, change, status);
	set(g, offsets->goid, change, i + 1);
	set(g, offsets->start_pc, change, entry);
	set(g, offsets->creator_pc, change, creator + 1);
	set(g, offsets->wait_since, change, (uint64_t)clock_now_ns());
	set_byte(g, offsets->wait_reason, change, REASON);
}

// One that waits, one that runs, one in a system call, and one that is gone.
static void make_all(const struct change *change)
{
	const struct go_offsets *offsets = &program.offsets;
	const struct change none = {.from = UINT16_MAX};

	make_goroutine(0, GOROUTINE_WAITING, change);
	set(gs[0], offsets->waiting, change, at(sudog));
	set(gs[0], offsets->labels, change, at(labels));
	sudog[0] = at(gs[0]);
	make_goroutine(1, GOROUTINE_RUNNING, change);
	set(gs[1], offsets->m, change, at(m));
	set(gs[1], offsets->locked_m, change, at(m));
	make_goroutine(2, GOROUTINE_WAITING, change);
	set(gs[2], offsets->syscall_sp, change, at(stack + STACK_WORDS / 2));
	set(gs[2], offsets->syscall_pc, change, entry + 1);
	make_goroutine(3, GOROUTINE_DEAD, change);
	make_goroutine(N_GOROUTINES, GOROUTINE_IDLE, change); // g0
	set(gs[N_GOROUTINES], offsets->m, change, at(m));
	memset(m, 0, sizeof(m));
	m[0] = at(gs[N_GOROUTINES]);
	set(m, offsets->thread_id, &none, (uint64_t)getpid());
	set(m, offsets->current, &none, at(gs[1]));
}

static void find_code(void *context)
{
	struct gopclntab *table = module_gopclntab(context);

	if (!table || !gopclntab_find_name(table, "main.main", 0, SIZE_MAX, &entry) ||
	    !gopclntab_find_name(table, "runtime.main", 0, SIZE_MAX, &creator))
		entry = 0;
}

static int set_up(void **state)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	(void)state;
	program.module = modules_add(&modules, MODULE_FILE, path, 1, 1, fd);
	if (!module_guard(program.module, find_code, program.module, MODULE_FOR_RULES) || !entry)
		return -1;
	program.minor = go_offsets_newest(&program.offsets);
	go_guess_reduce(&program.offsets);
	program.g_bytes = go_offsets_g_bytes(&program.offsets);
	program.list_pointer = at(&list_header[0]);
	program.list_length = at(&list_header[1]);
	strcpy(reasons[REASON], "chan receive");
	label[0] = at("key"), label[1] = 3, label[2] = at("value"), label[3] = 5;
	labels[0] = at(label), labels[1] = labels[2] = 1;
	for (size_t i = 0; i < N_GOROUTINES; i++)
		list[i] = at(gs[i]);
	for (size_t i = 0; i < STACK_WORDS; i++)
		stack[i] = 1000 + i;
	list_header[0] = at(list), list_header[1] = list_header[2] = N_GOROUTINES;
	resident_init(&resident, getpid());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	resident_deinit(&resident);
	modules_deinit(&modules);
	return 0;
}

static bool fits(const struct change *change)
{
	const struct go_memory memory = {getpid(), &resident};

	make_all(change);
	return go_guess_fits(&program, &memory);
}

static void test_same(void **state)
{
	(void)state;
	assert_true(fits(&(struct change){.from = UINT16_MAX}));
}

// A field more or less, before each of those that are believed; what a new one holds may be
// anything. (Without the labels, and what a goroutine waits by, which come last, it only tells
// less.)
static void test_moved(void **state)
{
	const struct go_offsets *offsets = &program.offsets;
	const uint16_t fields[] = {
	    offsets->low,         offsets->high,       offsets->m,          offsets->sp,
	    offsets->pc,          offsets->bp,         offsets->syscall_sp, offsets->syscall_pc,
	    offsets->syscall_bp,  offsets->status,     offsets->goid,       offsets->wait_since,
	    offsets->wait_reason, offsets->creator_pc, offsets->start_pc,
	};
	const uint64_t fillings[] = {0, 1, at(gs[0]), at(stack), UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < array_size(fields); i++)
		for (size_t k = 0; k < array_size(fillings); k++)
			for (int16_t by = -WORD; by <= WORD; by += 2 * WORD) {
				if (fields[i] + by < 0)
					continue;
				const struct change change = {fields[i], by, fillings[k]};
				if (fits(&change))
					fail_msg("offset %u, by %d, filled with %#jx", fields[i],
					         by, (uintmax_t)fillings[k]);
			}
}

// Labels come last: if they have moved, what is there instead has to be none.
static void test_moved_labels(void **state)
{
	const uint16_t from = program.offsets.labels;

	(void)state;
	assert_false(fits(&(struct change){from, WORD, at(stack)}));
	assert_false(fits(&(struct change){from, WORD, 1}));
	assert_true(fits(&(struct change){from, WORD, 0}));
}

// One part that does not fit is enough.
static void test_wrong(void **state)
{
	const struct go_offsets *offsets = &program.offsets;
	const struct go_memory memory = {getpid(), &resident};
	const struct change none = {.from = UINT16_MAX};
	const struct {
		size_t i;
		uint16_t offset;
		uint64_t value;
	} wrong[] = {
	    {0, offsets->pc, 0x1234},
	    {0, offsets->sp, at(list)},
	    {0, offsets->start_pc, entry + 1},
	    {0, offsets->creator_pc, at(list)},
	    {0, offsets->waiting, at(labels)},
	    {0, offsets->m, at(list)},
	    {1, offsets->m, 0},
	    {1, offsets->locked_m, at(stack)},
	    {2, offsets->syscall_pc, 1},
	    {2, offsets->syscall_sp, 8},
	    {2, offsets->goid, 0},
	    {2, offsets->wait_reason, 0},
	};

	(void)state;
	for (size_t i = 0; i < array_size(wrong); i++) {
		make_all(&none);
		set(gs[wrong[i].i], wrong[i].offset, &none, wrong[i].value);
		if (go_guess_fits(&program, &memory))
			fail_msg("%zu", i);
	}
	make_all(&none);
	set(m, offsets->thread_id, &none, UINT64_MAX);
	assert_false(go_guess_fits(&program, &memory));
}

// Anything at all may be there.
static void test_damaged(void **state)
{
	const struct go_memory memory = {getpid(), &resident};
	const struct change none = {.from = UINT16_MAX};
	size_t n_fitting = 0;

	(void)state;
	srandom(1);
	for (int i = 0; i < 20000; i++) {
		make_all(&none);
		for (int k = 0; k < 3; k++) {
			const uint64_t values[] = {
			    (uint64_t)random(), 0,     at(stack),
			    at(gs[1]),          entry, UINT64_MAX - (uint64_t)random()};
			gs[random() % N_GOROUTINES][random() % (352 / WORD + 1)] =
			    values[random() % array_size(values)];
		}
		n_fitting += go_guess_fits(&program, &memory);
	}
	assert_true(n_fitting > 0 && n_fitting < 20000);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_same),         cmocka_unit_test(test_moved),
	    cmocka_unit_test(test_moved_labels), cmocka_unit_test(test_wrong),
	    cmocka_unit_test(test_damaged),
	};

	if (argc != 2)
		return 2;
	path = argv[1];
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
