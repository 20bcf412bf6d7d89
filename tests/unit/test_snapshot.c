// SPDX-License-Identifier: MIT
// snapshot: the stacks of a child that stands still; and reading out of a copy.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "arch.h"
#include "maps.h"
#include "memory.h"
#include "snapshot.h"
#include "unit.h"

enum { ALTERNATE_BYTES = 1 << 16, LARGE_BYTES = 32 << 20, RED_ZONE = 128 };

static const uint64_t MARK = 0x5ca1ab1e0ddba11;

// What the child says of itself, in memory that both share.
struct published {
	uint64_t sp;          // of where it stands
	uint64_t mark;        // address of a word MARK above it
	uint64_t interrupted; // the same on the stack that a signal interrupted
	uint64_t base;        // where the stack ends; of an alternate one, where it begins
};

static struct published *published;
static int ready_fd;

// Stands still for good, at an SP just below this frame.
static void stand(volatile uint64_t *mark)
{
	char byte = 0;

	*mark = MARK;
	published->sp = (uint64_t)(uintptr_t)&byte & ~(uint64_t)15;
	published->mark = (uint64_t)(uintptr_t)mark;
	if (write(ready_fd, &byte, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

__attribute__((noinline)) static void stand_here(void)
{
	volatile uint64_t mark;

	stand(&mark);
}

static void handler(int number)
{
	(void)number;
	stand_here();
}

// What an earlier handler has left above: a context that interrupted one further down.
static void handler_above_old_context(int number)
{
	volatile uint64_t words[64] = {0};
	volatile uint64_t *stack = &words[ARCH_NATIVE->ucontext_stack_offset / 8];

	(void)number;
	stack[0] = published->base;
	stack[2] = ALTERNATE_BYTES;
	words[ARCH_NATIVE->ucontext_sp_offset / 8] = published->base + 4096;
	stand_here();
}

static void stand_in_handler(void (*handle)(int))
{
	volatile uint64_t mark = MARK;
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
	stack_t stack = {
	    .ss_sp = mmap(NULL, ALTERNATE_BYTES, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	    .ss_size = ALTERNATE_BYTES,
	};

	published->interrupted = (uint64_t)(uintptr_t)&mark;
	published->base = (uint64_t)(uintptr_t)stack.ss_sp;
	if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) != 0 ||
	    sigaction(SIGUSR1, &action, NULL) != 0)
		_exit(1);
	raise(SIGUSR1);
	_exit(mark != MARK);
}

static void stand_on_alternate_stack(void)
{
	stand_in_handler(handler);
}

static void stand_below_old_context(void)
{
	stand_in_handler(handler_above_old_context);
}

enum { PAGE_BYTES = 4096, GAP_PAGES = 4, SPREAD_PAGES = 64 };

// Stands as a coroutine, in the middle of a mapping that is far larger than any stack. `spread`:
// some of its pages further out were touched, every second one.
static void stand_as_coroutine(bool spread)
{
	static ucontext_t context, back;
	char *memory = mmap(NULL, LARGE_BYTES, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED || madvise(memory, LARGE_BYTES, MADV_NOHUGEPAGE) != 0 ||
	    getcontext(&context) != 0)
		_exit(1);
	context.uc_stack.ss_sp = memory;
	context.uc_stack.ss_size = LARGE_BYTES / 2;
	published->base = (uint64_t)(uintptr_t)memory + LARGE_BYTES / 2;
	for (size_t i = GAP_PAGES; spread && i < SPREAD_PAGES; i += 2)
		memory[LARGE_BYTES / 2 + i * PAGE_BYTES] = 1;
	makecontext(&context, stand_here, 0);
	swapcontext(&back, &context);
	_exit(1);
}

static void stand_in_large_mapping(void)
{
	stand_as_coroutine(false);
}

static void stand_on_gaps(void)
{
	stand_as_coroutine(true);
}

static struct child {
	pid_t pid; // 0: none
	struct maps maps;
	struct registers registers;
	struct snapshot_buffer buffer;
	struct snapshot snapshot;
} child;

// What the next copy goes by; nothing at first.
static struct snapshot_hint hint;

static int end(void **state)
{
	(void)state;
	hint = (struct snapshot_hint){0};
	if (!child.pid)
		return 0;
	kill(child.pid, SIGKILL);
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
	maps_deinit(&child.maps);
	snapshot_buffer_deinit(&child.buffer);
	child = (struct child){0};
	return 0;
}

static void start(void (*function)(void))
{
	int fds[2];
	char byte;

	assert_int_equal(pipe(fds), 0);
	*published = (struct published){0};
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ready_fd = fds[1];
		function();
		_exit(1);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	assert_true(maps_read(&child.maps, child.pid, child.pid));
	assert_true(snapshot_buffer_init(&child.buffer));
	registers_set(&child.registers, ARCH_NATIVE->sp, published->sp);
	registers_set(&child.registers, ARCH_NATIVE->pc, 0x1234);
}

// Skips the test where the machine does not permit it.
static void capture(void)
{
	snapshot_buffer_reset(&child.buffer);
	const bool done = snapshot_capture(child.pid, ARCH_NATIVE, &child.registers, &child.maps,
	                                   &hint, &child.buffer, &child.snapshot);
	if (!done && (errno == EPERM || errno == ENOSYS))
		skip();
	assert_true(done);
}

static bool holds_mark(uint64_t address)
{
	uint64_t value;

	return snapshot_read(&child.snapshot, address, 8, &value) && value == MARK;
}

static void check_ends_near(uint64_t base)
{
	const uint64_t stack_bytes = base - published->sp + RED_ZONE;

	assert_in_range(child.snapshot.regions[0].size, stack_bytes, stack_bytes + 4096);
}

static void test_own_stack(void **state)
{
	(void)state;
	start(stand_here);
	capture();
	assert_int_equal(child.snapshot.n_regions, 1);
	assert_false(child.snapshot.cut);
	assert_int_equal(child.snapshot.regions[0].start, published->sp - RED_ZONE);
	assert_true(holds_mark(published->mark));
	// All of it: to the end of its mapping.
	const struct mapping *mapping = maps_find(&child.maps, published->sp);
	assert_non_null(mapping);
	assert_int_equal(published->sp - RED_ZONE + child.snapshot.regions[0].size, mapping->end);
	// A known base is where it ends, but for a little.
	hint.base = published->mark + 64;
	hint.depth = hint.base - published->sp;
	capture();
	assert_int_equal(child.snapshot.n_regions, 1);
	check_ends_near(hint.base);
	assert_false(child.snapshot.cut);
	// And for a very little, unless the thread has had another one.
	const size_t single = child.snapshot.regions[0].size;
	assert_in_range(single, hint.base - published->sp, hint.base - published->sp + 512);
	hint.n_changes = 2;
	capture();
	check_ends_near(hint.base);
	assert_true(child.snapshot.regions[0].size > single + 1024);
}

static void check_alternate_stack(void (*function)(void))
{
	start(function);
	capture();
	assert_int_equal(child.snapshot.n_regions, 2);
	assert_true(holds_mark(published->mark));
	assert_true(holds_mark(published->interrupted));
}

static void test_alternate_stack(void **state)
{
	(void)state;
	check_alternate_stack(stand_on_alternate_stack);
	end(state);
	check_alternate_stack(stand_below_old_context);
}

// A stack that was unwound as deep as is shown is not searched, while it is held, for what a signal
// interrupted.
static void test_deep_stack(void **state)
{
	(void)state;
	start(stand_on_alternate_stack);
	hint.deep_sp = published->sp + 64;
	capture();
	assert_int_equal(child.snapshot.n_regions, 1);
	snapshot_hint_ended(&hint, &child.snapshot); // it was a signal stack
	capture();
	assert_int_equal(child.snapshot.n_regions, 2);
	hint.is_searched = false;
	hint.deep_sp = published->sp - 64; // that was another stack
	capture();
	assert_int_equal(child.snapshot.n_regions, 2);
	hint.deep_sp = published->sp + LARGE_BYTES;
	capture();
	assert_int_equal(child.snapshot.n_regions, 2);
}

// A rehearsal leaves nothing in the buffer, whatever is left of that stack.
static void test_rehearsal(void **state)
{
	(void)state;
	start(stand_here);
	capture();
	const size_t used = child.buffer.used;
	snapshot_hint_stopped(&hint, &child.snapshot);
	assert_int_equal(hint.stopped_sp, published->sp);
	assert_int_equal(hint.stopped_bytes, child.snapshot.regions[0].size);
	snapshot_rehearse(child.pid, ARCH_NATIVE, &child.maps, &hint, &child.buffer);
	assert_int_equal(child.buffer.used, used);
	hint.stopped_sp = 16; // where nothing is any more
	snapshot_rehearse(child.pid, ARCH_NATIVE, &child.maps, &hint, &child.buffer);
	assert_int_equal(child.buffer.used, used);
}

static void test_unknown_extent(void **state)
{
	(void)state;
	start(stand_in_large_mapping);
	capture();
	assert_int_equal(child.snapshot.regions[0].size, SNAPSHOT_UNKNOWN_STACK_BYTES + RED_ZONE);
	assert_true(child.snapshot.cut);
	hint.guess_bytes = 2 * SNAPSHOT_UNKNOWN_STACK_BYTES;
	capture();
	assert_int_equal(child.snapshot.regions[0].size, hint.guess_bytes + RED_ZONE);
	assert_true(child.snapshot.cut);
	hint.guess_bytes = (size_t)1 << 40;
	capture();
	assert_true(child.snapshot.regions[0].size <= SNAPSHOT_MAX_STACK_BYTES + RED_ZONE);
	hint.guess_bytes = 0;
	hint.base = published->base;
	hint.depth = 4096;
	capture();
	check_ends_near(published->base);
	assert_false(child.snapshot.cut);
}

// SP at the very start of a mapping: there is no red zone to be had, but the stack is there.
static void test_no_red_zone(void **state)
{
	(void)state;
	start(stand_here);
	const struct mapping *mapping = maps_find(&child.maps, published->sp);
	assert_non_null(mapping);
	registers_set(&child.registers, ARCH_NATIVE->sp, mapping->start);
	capture();
	uint64_t value;
	assert_false(snapshot_read(&child.snapshot, mapping->start - 8, 8, &value));
	assert_true(holds_mark(published->mark));
}

// What is not in memory is not fetched, and not taken for zeros.
static void test_gaps(void **state)
{
	uint64_t value = 77;

	(void)state;
	start(stand_on_gaps);
	capture();
	assert_true(holds_mark(published->mark));
	for (size_t i = 0; i < GAP_PAGES; i++)
		assert_false(
		    snapshot_read(&child.snapshot, published->base + i * PAGE_BYTES, 8, &value));
	assert_true(snapshot_has_gap_at(&child.snapshot, published->base));
	assert_false(snapshot_has_gap_at(&child.snapshot, published->mark));
	const uint64_t page = published->base + GAP_PAGES * PAGE_BYTES;
	assert_true(snapshot_read(&child.snapshot, page, 8, &value));
	assert_int_equal(value, 1);
	assert_true(snapshot_read(&child.snapshot, page + PAGE_BYTES - 8, 8, &value));
	assert_false(snapshot_read(&child.snapshot, page + PAGE_BYTES - 4, 8, &value));
	assert_false(snapshot_read_word(&child.snapshot, page - 4, &value));
	// However many there are, each page is known.
	for (size_t i = GAP_PAGES; i < SPREAD_PAGES; i++) {
		const uint64_t address = published->base + i * PAGE_BYTES;
		assert_int_equal(snapshot_read(&child.snapshot, address, 8, &value), i % 2 == 0);
		assert_int_equal(snapshot_has_gap_at(&child.snapshot, address), i % 2 != 0);
	}
	assert_int_equal(child.snapshot.regions[0].size, SNAPSHOT_UNKNOWN_STACK_BYTES + RED_ZONE);
}

// A stack that is unwound only so far is not copied to its end.
static void test_hint_deep(void **state)
{
	const uint64_t start = 0x10000000;
	struct snapshot snapshot = {
	    .n_regions = 1,
	    .regions = {{.start = start, .size = SNAPSHOT_KNOWN_STACK_BYTES}},
	};

	(void)state;
	for (int i = 0; i < 100; i++)
		snapshot_hint_deep(&hint, &snapshot, start + 80000, start + 80000);
	assert_int_equal(hint.limit_bytes, 100000);
	assert_int_equal(hint.guess_bytes, 100000);
	snapshot_hint_deep(&hint, &snapshot, start - 8, start - 8);
	assert_int_equal(hint.limit_bytes, 100000);
	snapshot.regions[0].size = 100000;
	snapshot_hint_grow(&hint, &snapshot);
	assert_int_equal(hint.limit_bytes, 200000);
	snapshot.regions[0].size = SNAPSHOT_MAX_STACK_BYTES;
	snapshot_hint_grow(&hint, &snapshot);
	assert_int_equal(hint.limit_bytes, SNAPSHOT_MAX_STACK_BYTES);
}

// Of a stack that is far deeper than is shown, only some frames are kept, and copied.
static void test_hint_huge(void **state)
{
	(void)state;
	start(stand_here);
	capture();
	const struct snapshot_region *region = &child.snapshot.regions[0];
	const uint64_t stack_bytes = child.snapshot.stack_bytes;
	assert_true(stack_bytes > 512);
	assert_false(snapshot_is_huge(&child.snapshot, region->start + region->size, 1));
	assert_false(snapshot_is_huge(&child.snapshot, region->start, 1)); // on another stack
	assert_true(snapshot_is_huge(&child.snapshot, region->start + stack_bytes / 8, 1));
	assert_false(snapshot_is_huge(&child.snapshot, region->start + stack_bytes / 8, 4));
	snapshot_hint_deep(&hint, &child.snapshot, region->start + stack_bytes / 8,
	                   region->start + 320);
	assert_int_equal(hint.huge_limit_bytes, 400);
	capture();
	assert_true(child.snapshot.is_huge);
	assert_true(child.snapshot.cut);
	assert_int_equal(region->size, 400 + RED_ZONE);
	// Now and then, and when that was too little, the usual limit holds.
	const size_t limit_bytes = hint.limit_bytes;
	for (int i = 0; i < 1000 && hint.huge_bytes != 0; i++)
		snapshot_hint_deep(&hint, &child.snapshot, region->start + 320,
		                   region->start + 320);
	assert_int_equal(hint.huge_bytes, 0);
	hint.huge_bytes = 1;
	snapshot_hint_grow(&hint, &child.snapshot);
	assert_int_equal(hint.huge_bytes, 0);
	assert_int_equal(hint.limit_bytes, limit_bytes);
	hint.huge_bytes = stack_bytes; // the stack is not as deep any more
	capture();
	assert_false(child.snapshot.is_huge);
}

// However large the outermost frames are, they do not make a stack deep.
static void test_hint_whole(void **state)
{
	(void)state;
	start(stand_here);
	capture();
	const struct snapshot *snapshot = &child.snapshot;
	const uint64_t sp = published->sp, top = sp + snapshot->stack_bytes;
	assert_int_equal(snapshot->deep_bytes, snapshot->stack_bytes);
	snapshot_hint_whole(&hint, snapshot, sp + 256, top - 8);
	snapshot_hint_whole(&hint, snapshot, sp + 300, top - 8); // a shallow one
	snapshot_hint_whole(&hint, snapshot, sp - 8, top - 8);   // another stack
	snapshot_hint_whole(&hint, snapshot, sp + 16, top + 64);
	capture();
	assert_int_equal(snapshot->deep_bytes, 256);
	assert_true(snapshot->stack_bytes > 256);
	assert_true(snapshot_is_huge(snapshot, snapshot->regions[0].start + 40, 1));
	assert_false(snapshot_is_huge(snapshot, snapshot->regions[0].start + 80, 1));
	hint.huge_bytes = 256;
	hint.huge_limit_bytes = 64;
	capture();
	assert_false(snapshot->is_huge);
	hint.huge_bytes = 255;
	capture();
	assert_true(snapshot->is_huge);
	hint.outer_sp = sp; // it is among the outermost frames now
	capture();
	assert_int_equal(snapshot->deep_bytes, 0);
	assert_false(snapshot->is_huge);
}

static void test_nothing_there(void **state)
{
	(void)state;
	start(stand_here);
	for (size_t i = 0; i < 3; i++) {
		const uint64_t sps[] = {0, 8, UINT64_MAX - 7};
		registers_set(&child.registers, ARCH_NATIVE->sp, sps[i]);
		assert_false(snapshot_capture(child.pid, ARCH_NATIVE, &child.registers, &child.maps,
		                              &hint, &child.buffer, &child.snapshot));
		assert_int_equal(child.snapshot.n_regions, 0);
	}
}

static void test_read(void **state)
{
	static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
	struct snapshot snapshot = {
	    .n_regions = 2,
	    .regions = {{.start = 0x1000, .size = 9, .bytes = bytes},
	                {.start = UINT64_MAX - 8, .size = 9, .bytes = bytes}},
	};
	uint64_t value = 77;

	(void)state;
	assert_true(snapshot_read(&snapshot, 0x1000, 8, &value));
	assert_true(value == UINT64_C(0x0807060504030201));
	assert_true(snapshot_read(&snapshot, 0x1001, 8, &value));
	assert_true(snapshot_read(&snapshot, 0x1008, 1, &value));
	assert_int_equal(value, 9);
	assert_true(snapshot_read(&snapshot, 0x1004, 4, &value));
	assert_int_equal(value, 0x08070605);
	assert_true(snapshot_read(&snapshot, UINT64_MAX - 8, 8, &value));
	value = 77;
	assert_false(snapshot_read(&snapshot, 0x1002, 8, &value));
	assert_false(snapshot_read(&snapshot, 0xfff, 8, &value));
	assert_false(snapshot_read(&snapshot, 0, 1, &value));
	assert_false(snapshot_read(&snapshot, UINT64_MAX, 2, &value));
	assert_int_equal(value, 77);
}

static int set_up(void **state)
{
	(void)state;
	published = mmap(NULL, sizeof(*published), PROT_READ | PROT_WRITE,
	                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return published == MAP_FAILED;
}

// A thread with one stack has a base; one that goes from coroutine to coroutine has none.
static void test_base(void **state)
{
	struct snapshot snapshot = {.n_regions = 1,
	                            .regions = {{.start = 0x10000, .size = 0x10000}}};

	(void)state;
	snapshot.registers.value[ARCH_NATIVE->sp] = 0x10100;
	for (int i = 0; i < 100; i++) {
		snapshot_hint_base(&hint, &snapshot, 0x12000);
		assert_int_equal(hint.base, 0x12000);
	}
	assert_int_equal(hint.depth, 0x1f00);
	for (int i = 0; i < 100; i++)
		snapshot_hint_base(&hint, &snapshot, i % 2 ? 0x12000 : 0x14000);
	assert_int_equal(hint.base, 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_deep_stack),     TEST(test_rehearsal),
	    TEST(test_own_stack),      TEST(test_alternate_stack),
	    TEST(test_unknown_extent), TEST(test_no_red_zone),
	    TEST(test_gaps),           TEST(test_hint_deep),
	    TEST(test_hint_huge),      TEST(test_nothing_there),
	    TEST(test_hint_whole),     TEST(test_read),
	    TEST(test_base),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
