// SPDX-License-Identifier: MIT
// java_replay: a read gives what is in memory, whether it was made ahead or not, and whatever is
// asked for.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "java_replay.h"
#include "memory.h"
#include "unit.h"

enum {
	PAGE = 4096,
	N_PAGES = 8,
	N_MAPPED = 6, // the others cannot be read
	MAX_BLOCKS = 4,
	N_TIDS = 3,
	MAX_READS = JAVA_REPLAY_PLACES + 20,
	N_ROUNDS = 400,
};

static uint8_t *pages;
static struct resident resident;
static struct java_replay replay;

// A read that is asked for: of several places at once.
struct request {
	size_t n;
	struct java_place places[MAX_BLOCKS];
};

static int set_up(void **state)
{
	(void)state;
	pages =
	    mmap(NULL, N_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(pages != MAP_FAILED);
	munmap(pages + N_MAPPED * PAGE, (N_PAGES - N_MAPPED) * PAGE);
	for (size_t i = 0; i < N_MAPPED * PAGE; i++)
		pages[i] = (uint8_t)(i * 7 + i / 256);
	resident_init(&resident, getpid());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	java_replay_deinit(&replay);
	resident_deinit(&resident);
	munmap(pages, N_MAPPED * PAGE);
	return 0;
}

static void begin(int tid)
{
	java_replay_begin(&replay, &resident, getpid(), tid);
}

// Reads one place, which is in memory, and returns its first byte.
static uint8_t read_byte(size_t at, size_t size)
{
	uint8_t bytes[PAGE];
	struct resident_block block = {(uint64_t)(uintptr_t)pages + at, bytes, size, false};

	java_replay_read(&replay, &resident, getpid(), &block, 1);
	assert_true(block.is_read);
	assert_memory_equal(bytes + 1, pages + at + 1, size - 1);
	return bytes[0];
}

// What was read ahead is used for as long as the same is asked for, and no longer.
static void test_same_again(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		begin(1);
		read_byte(0, 8);
		read_byte(100, 8);
		read_byte(200, 8);
		java_replay_end(&replay);
	}
	const uint8_t before = pages[0];
	begin(1);
	pages[0] = pages[100] = pages[200] = (uint8_t)(before + 1);
	assert_int_equal(read_byte(0, 8), before);
	// Another size, and so another read; from here on each is made now.
	assert_int_equal(read_byte(100, 16), (uint8_t)(before + 1));
	assert_int_equal(read_byte(200, 8), (uint8_t)(before + 1));
	java_replay_end(&replay);
}

// Threads whose numbers have the same place do not see each other's reads.
static void test_same_place(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		begin(5);
		read_byte(300, 8);
		java_replay_end(&replay);
	}
	begin(5 + JAVA_REPLAY_THREADS);
	const uint8_t before = pages[300]++;
	assert_int_equal(read_byte(300, 8), (uint8_t)(before + 1));
	java_replay_end(&replay);
	begin(5);
	pages[300]++;
	assert_int_equal(read_byte(300, 8), (uint8_t)(before + 2));
	java_replay_end(&replay);
}

static uint32_t random_below(uint32_t n)
{
	static uint64_t word = 1;

	word = word * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)(word >> 33) % n;
}

static uint64_t random_address(void)
{
	switch (random_below(20)) {
	case 0:
		return random_below(PAGE);
	case 1:
		return UINT64_MAX - random_below(PAGE);
	default:
		return (uint64_t)(uintptr_t)pages + random_below(N_PAGES * PAGE);
	}
}

static void make_request(struct request *request)
{
	request->n = 1 + random_below(MAX_BLOCKS);
	for (size_t i = 0; i < request->n; i++)
		request->places[i] = (struct java_place){
		    random_address(), random_below(10) ? 1 + random_below(64) : PAGE + 1};
}

// True if all of the place is mapped.
static bool is_mapped(const struct java_place *place)
{
	const uint64_t start = (uint64_t)(uintptr_t)pages, size = N_MAPPED * PAGE;

	return place->address >= start && place->address - start <= size &&
	       place->size <= size - (place->address - start);
}

static void check_request(const struct request *request)
{
	struct resident_block blocks[MAX_BLOCKS];

	for (size_t i = 0; i < request->n; i++) {
		const struct java_place *place = &request->places[i];
		// Just as large: a sanitizer sees what is written beside it.
		blocks[i] = (struct resident_block){place->address, memory_alloc(place->size),
		                                    place->size, false};
	}
	java_replay_read(&replay, &resident, getpid(), blocks, request->n);
	for (size_t i = 0; i < request->n; i++) {
		const struct java_place *place = &request->places[i];
		assert_int_equal(blocks[i].is_read, is_mapped(place));
		if (blocks[i].is_read)
			assert_memory_equal(blocks[i].bytes,
			                    (const void *)(uintptr_t)place->address, place->size);
		free(blocks[i].bytes);
	}
}

// Chains that mostly are as they were, and then are longer or shorter, lead elsewhere, to what
// cannot be read, or are too large to be kept. Nothing changes while one is read.
static void test_chains(void **state)
{
	static struct request chains[N_TIDS][MAX_READS];

	(void)state;
	for (int tid = 0; tid < N_TIDS; tid++)
		for (size_t i = 0; i < MAX_READS; i++)
			make_request(&chains[tid][i]);
	for (size_t round = 0; round < N_ROUNDS; round++) {
		const uint32_t tid = random_below(N_TIDS);
		const size_t n = random_below(3) ? 5 : random_below(MAX_READS);
		if (random_below(2))
			make_request(&chains[tid][random_below(8)]);
		pages[random_below(N_MAPPED * PAGE)]++;
		begin((int)tid * JAVA_REPLAY_THREADS / 2);
		for (size_t i = 0; i < n; i++)
			check_request(&chains[tid][i]);
		java_replay_end(&replay);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_same_again),
	    cmocka_unit_test(test_same_place),
	    cmocka_unit_test(test_chains),
	};

	return cmocka_run_group_tests_name("java_replay", tests, set_up, tear_down);
}
