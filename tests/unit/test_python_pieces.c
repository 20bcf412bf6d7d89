// SPDX-License-Identifier: MIT
// python_pieces: what was asked for once is read at once the next time, of our own memory.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"
#include "memory.h"
#include "python_pieces.h"
#include "unit.h"

enum { PAGE_BYTES = 4096, N_PAGES = 8, SCRATCH_BYTES = 1 << 18 };

static unsigned int n_reads, n_asks;

// In the place of the C library's, to count them; as the next one.
ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n_local,
                         const struct iovec *remote, unsigned long n_remote, unsigned long flags)
{
	n_reads++;
	return syscall(SYS_process_vm_readv, pid, local, n_local, remote, n_remote, flags);
}

// Only the pagemap is read by this.
ssize_t pread(int fd, void *bytes, size_t size, off_t at)
{
	n_asks++;
	return syscall(SYS_pread64, fd, bytes, size, at);
}

struct world {
	uint8_t *memory; // of which each byte is the number of its page
	struct resident resident;
	struct python_piece asked[PYTHON_MAX_PIECES];
	struct python_pieces pieces;
	struct python_plan *plan;
	_Alignas(16) uint8_t scratch[SCRATCH_BYTES];
};

static struct world *create(void)
{
	struct world *world = memory_alloc_zeroed(1, sizeof(*world));

	world->memory = mmap(NULL, (size_t)N_PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
	                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(world->memory, MAP_FAILED);
	for (size_t i = 0; i < (size_t)N_PAGES * PAGE_BYTES; i++)
		world->memory[i] = i / PAGE_BYTES;
	resident_init(&world->resident, getpid());
	return world;
}

static void destroy(struct world *world)
{
	munmap(world->memory, (size_t)N_PAGES * PAGE_BYTES);
	resident_deinit(&world->resident);
	free(world->plan);
	free(world);
}

static uint64_t address_of(const struct world *world, size_t page, size_t at)
{
	return (uint64_t)(uintptr_t)world->memory + page * PAGE_BYTES + at;
}

// The thread is looked at anew, by what it was asked for last time.
static void begin(struct world *world)
{
	struct python_plan *old = world->plan;

	world->plan = python_plan_make(old, world->asked, world->pieces.n_asked);
	if (world->plan != old)
		free(old);
	world->pieces = (struct python_pieces){
	    .resident = &world->resident, .tid = gettid(), .asked = world->asked};
	n_reads = 0;
	const size_t used =
	    python_pieces_read_plan(&world->pieces, world->plan, world->scratch, SCRATCH_BYTES);
	assert_in_range(used, 0, SCRATCH_BYTES);
}

static void check(struct world *world, size_t page, size_t at)
{
	uint8_t bytes[16] = {0};

	assert_true(
	    python_pieces_read(&world->pieces, address_of(world, page, at), bytes, sizeof(bytes)));
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], page);
}

static void check_all(struct world *world)
{
	for (size_t page = N_PAGES; page-- > 0;)
		for (size_t at = 0; at < PAGE_BYTES; at += PAGE_BYTES / 2)
			check(world, page, at);
}

static void test_again(void **state)
{
	struct world *world = create();

	(void)state;
	begin(world);
	assert_int_equal(n_reads, 0);
	check_all(world);
	assert_int_equal(n_reads, 2 * N_PAGES);
	for (int i = 0; i < 3; i++) { // what was planned is planned again
		begin(world);
		assert_int_equal(n_reads, 1);
		check_all(world);
		assert_int_equal(n_reads, 1);
		assert_int_equal(world->plan->n, 2 * N_PAGES);
	}
	check(world, 3, 1000); // that was not
	assert_int_equal(n_reads, 2);
	destroy(world);
}

static void test_together(void **state)
{
	struct world *world = create();

	(void)state;
	begin(world);
	for (size_t at = 0; at < PAGE_BYTES; at += 256)
		check(world, 1, at);
	check(world, 1, 100); // inside of what is between
	begin(world);
	assert_int_equal(world->plan->n, 1);
	assert_int_equal(world->plan->items[0].size, PAGE_BYTES - 256 + 16);
	assert_int_equal(n_reads, 1);
	check(world, 1, 512);
	assert_int_equal(n_reads, 1);
	// Near, but on another page, which may not be there.
	begin(world);
	check(world, 1, PAGE_BYTES - 16);
	check(world, 2, 16);
	begin(world);
	assert_int_equal(world->plan->n, 2);
	destroy(world);
}

static void test_gone(void **state)
{
	struct world *world = create();
	uint8_t bytes[16];

	(void)state;
	begin(world);
	check_all(world);
	munmap(world->memory + 4 * PAGE_BYTES, PAGE_BYTES);
	begin(world);
	for (size_t page = 0; page < N_PAGES; page++)
		if (page != 4)
			check(world, page, 0);
	assert_int_equal(n_reads, 1);
	assert_false(python_pieces_read(&world->pieces, address_of(world, 4, 0), bytes, 16));
	begin(world);
	assert_int_equal(world->plan->n, N_PAGES - 1);
	destroy(world);
}

// Looks ahead, does something to the page, and reads after so long. Returns false if that has taken
// longer than answers are valid.
static bool look_and_read(struct world *world, void (*change)(uint8_t *page), unsigned int us,
                          bool *ret_is_there)
{
	const int64_t start_ns = clock_now_ns();
	struct resident_block block = {address_of(world, 5, 0), world->scratch, 16, false};

	python_pieces_look_ahead(&world->resident, gettid(), world->plan, NULL, 0);
	change(world->memory + 5 * (size_t)PAGE_BYTES);
	usleep(us);
	n_asks = 0;
	resident_read_blocks(&world->resident, gettid(), &block, 1);
	*ret_is_there = block.is_read;
	return clock_now_ns() - start_ns < 200000;
}

static void fill(uint8_t *page)
{
	memset(page, 5, PAGE_BYTES);
}

static void drop(uint8_t *page)
{
	madvise(page, PAGE_BYTES, MADV_DONTNEED);
}

// Until it is not too late. What was found last is too old by then.
static void look_and_read_quickly(struct world *world, void (*before)(uint8_t *page),
                                  void (*change)(uint8_t *page), bool *ret_is_there)
{
	bool is_quick = false;

	for (int i = 0; i < 10000 && !is_quick; i++) {
		before(world->memory + 5 * (size_t)PAGE_BYTES);
		usleep(300);
		is_quick = look_and_read(world, change, 0, ret_is_there);
	}
	assert_true(is_quick);
}

// A page that is found before a thread is held is not asked for again, for some time; one that is
// not may have come since.
static void test_look_ahead(void **state)
{
	struct world *world = create();
	bool is_there;

	(void)state;
	begin(world);
	check(world, 5, 0);
	begin(world);
	look_and_read_quickly(world, fill, fill, &is_there);
	assert_true(is_there);
	assert_int_equal(n_asks, 0);
	look_and_read_quickly(world, drop, fill, &is_there);
	assert_true(is_there);
	assert_int_equal(n_asks, 1);
	look_and_read_quickly(world, drop, drop, &is_there);
	assert_false(is_there);
	look_and_read(world, fill, 300, &is_there);
	assert_true(is_there);
	assert_int_equal(n_asks, 1);
	destroy(world);
}

// What is read before a thread is held goes where it is read to again, and is not taken for that.
static void test_rehearsal(void **state)
{
	struct world *world = create();
	uint8_t bytes[16];

	(void)state;
	begin(world);
	check_all(world);
	begin(world);
	n_reads = 0;
	python_pieces_look_ahead(&world->resident, gettid(), world->plan, NULL, 0);
	assert_int_equal(n_reads, 0);
	memset(world->scratch, 0, SCRATCH_BYTES);
	python_pieces_look_ahead(&world->resident, gettid(), world->plan, world->scratch,
	                         SCRATCH_BYTES);
	assert_int_equal(n_reads, 1);
	const uint64_t address = address_of(world, 5, 0);
	const uint8_t *read = python_pieces_find(&world->pieces, address, sizeof(bytes));
	assert_in_range(read, world->scratch, world->scratch + SCRATCH_BYTES - sizeof(bytes));
	assert_int_equal(read[0], 5);
	world->memory[5 * (size_t)PAGE_BYTES] = 77;
	python_pieces_read_plan(&world->pieces, world->plan, world->scratch, SCRATCH_BYTES);
	assert_ptr_equal(python_pieces_find(&world->pieces, address, sizeof(bytes)), read);
	assert_int_equal(read[0], 77);
	destroy(world);
}

static void test_bounds(void **state)
{
	struct world *world = create();
	const struct python_piece wild[] = {
	    {UINT64_MAX - 7, 16}, {0, 8}, {address_of(world, 0, 0), UINT64_MAX}};
	uint8_t bytes[16];

	(void)state;
	for (size_t i = 0; i < array_size(wild); i++) {
		memcpy(world->asked, &wild[i], sizeof(wild[i]));
		world->pieces.n_asked = 1;
		begin(world);
		assert_null(python_pieces_find(&world->pieces, wild[i].address, 8));
		assert_false(python_pieces_read(&world->pieces, UINT64_MAX - 7, bytes, 16));
	}
	// More than there is room for: what fits is read.
	world->asked[0] = (struct python_piece){address_of(world, 0, 0), 3 * PAGE_BYTES};
	world->asked[1] = (struct python_piece){address_of(world, 4, 0), 16};
	free(world->plan);
	world->plan = python_plan_make(NULL, world->asked, 2);
	world->pieces = (struct python_pieces){.resident = &world->resident, .tid = gettid()};
	python_pieces_read_plan(&world->pieces, world->plan, world->scratch, PAGE_BYTES);
	assert_null(python_pieces_find(&world->pieces, address_of(world, 0, 0), 16));
	assert_non_null(python_pieces_find(&world->pieces, address_of(world, 4, 0), 16));
	assert_null(python_pieces_find(&world->pieces, address_of(world, 4, 0), 17));
	assert_null(python_pieces_find(&world->pieces, address_of(world, 4, 0) - 1, 16));
	destroy(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_again),  cmocka_unit_test(test_together),
	    cmocka_unit_test(test_gone),   cmocka_unit_test(test_look_ahead),
	    cmocka_unit_test(test_bounds), cmocka_unit_test(test_rehearsal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
