// SPDX-License-Identifier: MIT
// resident: what a copy holds, and where its gaps are, from memory of which some pages are there.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"
#include "resident.h"
#include "unit.h"

enum { PAGE = 4096, MANY_PAGES = 4096, MARK = 0x5a };

static struct resident resident;

static uint8_t *map_pages(size_t n)
{
	uint8_t *pages = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(pages != MAP_FAILED);
	if (madvise(pages, n * PAGE, MADV_NOHUGEPAGE) != 0)
		skip();
	return pages;
}

// Touches one page of `each`, and copies `size` bytes from `from` on. What is touched is in the
// copy, what is not is a gap.
static void check_copy(size_t each, size_t from, size_t size)
{
	const size_t n_pages = (from + size + PAGE - 1) / PAGE;
	uint8_t *pages = map_pages(n_pages);
	_cleanup_free_ uint8_t *bytes = memory_alloc(size);
	struct resident_gaps gaps;

	if (sysconf(_SC_PAGESIZE) != PAGE)
		skip();
	for (size_t i = 0; i < n_pages; i += each)
		memset(pages + i * PAGE, MARK, PAGE);
	memset(bytes, 0, size);
	assert_int_equal(resident_copy(&resident, getpid(), (uint64_t)(uintptr_t)pages + from,
	                               bytes, size, &gaps),
	                 size);
	for (size_t at = 0; at < size; at += PAGE / 4) {
		const bool is_there = (from + at) / PAGE % each == 0;
		assert_int_equal(resident_has_gap(&gaps, at, 1), !is_there);
		assert_int_equal(bytes[at], is_there ? MARK : 0);
	}
	assert_int_equal(gaps.count, n_pages - (n_pages + each - 1) / each);
	munmap(pages, n_pages * PAGE);
}

static void test_many_gaps(void **state)
{
	(void)state;
	check_copy(2, 0, (size_t)MANY_PAGES * PAGE);
	check_copy(2, PAGE - 128, (size_t)MANY_PAGES * PAGE);
	check_copy(4, 8, (size_t)MANY_PAGES * PAGE);
	check_copy(1, 0, (size_t)MANY_PAGES * PAGE);
	check_copy(2, 100, 5000);
	check_copy(MANY_PAGES, 0, (size_t)MANY_PAGES * PAGE);
}

// Of so much that not all gaps are told, all that is there is copied.
static void test_larger(void **state)
{
	const size_t n = RESIDENT_MAX_PAGES + 1000, size = n * PAGE;
	uint8_t *pages = map_pages(n);
	_cleanup_free_ uint8_t *bytes = memory_alloc(size);
	struct resident_gaps gaps;

	(void)state;
	for (size_t i = 0; i < n; i += 2)
		pages[i * PAGE] = MARK;
	assert_int_equal(
	    resident_copy(&resident, getpid(), (uint64_t)(uintptr_t)pages, bytes, size, &gaps),
	    size);
	for (size_t i = 0; i < n; i += 2)
		assert_int_equal(bytes[i * PAGE], MARK);
	assert_int_equal(gaps.count, RESIDENT_MAX_PAGES / 2);
	assert_false(resident_has_gap(&gaps, size - 8, 8));
	munmap(pages, size);
}

// A copy ends where memory cannot be read, though it is there.
static void test_ends_early(void **state)
{
	const size_t n = 1000, n_read = 601, size = n * PAGE;
	uint8_t *pages = map_pages(n);
	_cleanup_free_ uint8_t *bytes = memory_alloc(size);
	struct resident_gaps gaps;

	(void)state;
	for (size_t i = 0; i < n; i += 2)
		pages[i * PAGE] = MARK;
	assert_int_equal(mprotect(pages + (n_read + 1) * PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(
	    resident_copy(&resident, getpid(), (uint64_t)(uintptr_t)pages, bytes, size, &gaps),
	    n_read * PAGE);
	assert_int_equal(bytes[(n_read - 1) * PAGE], MARK);
	assert_int_equal(gaps.count, n_read / 2);
	munmap(pages, size);
}

static void test_ends_of_gaps(void **state)
{
	struct resident_gaps gaps = {
	    .count = 3, .are_missing = {0x6, 0x1}, .n_pages = 65, .before = 4000, .page_shift = 12};

	(void)state;
	assert_int_equal(resident_first_gap(&gaps, 10000), 96);
	assert_int_equal(resident_first_gap(&gaps, 96), 96);
	assert_int_equal(resident_first_gap(&gaps, 90), 90);
	assert_int_equal(resident_last_gap(&gaps, 65 * PAGE - 4000), 64 * PAGE - 4000);
	assert_int_equal(resident_last_gap(&gaps, 64 * PAGE - 4000), 64 * PAGE - 4000);
	assert_int_equal(resident_last_gap(&gaps, 2 * PAGE), 96);
	resident_cut_gaps(&gaps, 64 * PAGE - 4000);
	assert_int_equal(gaps.count, 2);
	resident_cut_gaps(&gaps, 96);
	assert_int_equal(gaps.count, 0);
	assert_false(resident_has_gap(&gaps, 96, 8));
	assert_int_equal(resident_first_gap(&gaps, 10000), 10000);
}

static bool read_mark(const uint8_t *place)
{
	uint8_t byte = 0;

	return resident_read(&resident, getpid(), (uint64_t)(uintptr_t)place, &byte, 1) &&
	       byte == MARK;
}

// What is believed of pages is only that they are there; a page that is not is asked for anew.
static void test_calm(void **state)
{
	uint8_t *pages = map_pages(3);

	(void)state;
	pages[0] = MARK;
	assert_false(resident_set_calm(&resident, true));
	for (int i = 0; i < 3; i++) {
		assert_true(read_mark(pages));
		assert_false(read_mark(pages + 2 * PAGE));
	}
	pages[PAGE] = MARK;
	assert_true(read_mark(pages + PAGE));
	assert_true(resident_set_calm(&resident, false));
	assert_true(read_mark(pages + PAGE));
	assert_false(resident_set_calm(&resident, true));
	munmap(pages, PAGE);
	assert_false(read_mark(pages));
	assert_true(read_mark(pages + PAGE));
	munmap(pages + PAGE, 2 * PAGE);
	assert_false(read_mark(pages + PAGE));
	assert_true(resident_set_calm(&resident, false));
}

static int set_up(void **state)
{
	(void)state;
	resident_init(&resident, getpid());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	resident_deinit(&resident);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_many_gaps),  cmocka_unit_test(test_larger),
	    cmocka_unit_test(test_ends_early), cmocka_unit_test(test_ends_of_gaps),
	    cmocka_unit_test(test_calm),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
