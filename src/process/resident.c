// SPDX-License-Identifier: MIT
#include "resident.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"
#include "order.h"
#include "proc.h"

enum {
	MAX_ENTRIES = 512, // how many are read at once
	MAX_RUNS = 128,    // of pages that are resident, which one call reads
};

// Documentation/admin-guide/mm/pagemap.rst
static const uint64_t PAGE_IS_PRESENT = 1ull << 63;

void resident_init(struct resident *resident, int pid)
{
	*resident =
	    (struct resident){.pid = pid, .fd = -1, .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
}

static void close_pagemap(struct resident *resident)
{
	const int fd = resident->fd;

	resident->fd = -1; // first: a signal handler may open another one (held_time.h)
	if (fd >= 0)
		close(fd);
}

void resident_deinit(struct resident *resident)
{
	close_pagemap(resident);
}

void resident_note_program(struct resident *resident, uint64_t program)
{
	if (resident->program != program) {
		close_pagemap(resident);
		resident->ahead_ns = resident->often_ns = 0;
	}
	resident->program = program;
}

// True if the process is gone. If we have no pagemap of our own either, the kernel was built
// without it.
static bool is_gone(int error)
{
	return error == ESRCH || (error == ENOENT && access("/proc/self/pagemap", F_OK) == 0);
}

void resident_open(struct resident *resident, int tid)
{
	if (resident->fd >= 0)
		return;
	resident->fd = proc_open(resident->pid, tid, "pagemap");
	if (resident->fd < 0 && !is_gone(errno))
		resident->hidden = true;
}

// Reads the entries of up to n pages; returns how many, 0: none.
static size_t read_entries(struct resident *resident, int tid, uint64_t page, uint64_t *entries,
                           size_t n)
{
	const off_t at = (off_t)(page * sizeof(*entries));
	ssize_t size = -1;

	// A pagemap that was opened before an exec has no entries any more: it is opened again.
	for (int i = 0; i < 2 && size <= 0; i++) {
		resident_open(resident, tid);
		size =
		    resident->fd < 0 ? -1 : pread(resident->fd, entries, n * sizeof(*entries), at);
		if (size <= 0)
			close_pagemap(resident);
	}
	return size > 0 ? (size_t)size / sizeof(*entries) : 0;
}

void resident_await(struct resident *resident, int tid)
{
	uint64_t entry;

	read_entries(resident, tid, 0, &entry, 1);
}

// A copy that is being made.
struct copying {
	int tid;
	uint64_t address;
	uint8_t *bytes;
	size_t size;
	struct iovec local[MAX_RUNS], remote[MAX_RUNS]; // runs that are still to be read
	size_t n_runs;
	size_t end; // of what was read
	bool ended; // something could not be read: the copy ends there
	struct resident_gaps *gaps;
};

static size_t end_of(const struct copying *copying, const struct iovec *run)
{
	return (size_t)((const uint8_t *)run->iov_base - copying->bytes) + run->iov_len;
}

static void read_runs(struct copying *copying)
{
	const size_t n = copying->n_runs;

	copying->n_runs = 0;
	if (n == 0)
		return;
	const ssize_t size =
	    process_vm_readv(copying->tid, copying->local, n, copying->remote, n, 0);
	size_t left = size > 0 ? (size_t)size : 0;
	for (size_t i = 0; i < n && left > 0; i++) {
		struct iovec run = copying->local[i];
		run.iov_len = order_min(left, run.iov_len);
		copying->end = end_of(copying, &run);
		left -= run.iov_len;
	}
	copying->ended = copying->end != end_of(copying, &copying->local[n - 1]);
}

// Adds a stretch that is to be read. Most copies have one run, and are read in one call.
static void add_run(struct copying *copying, size_t start, size_t end)
{
	uint8_t *bytes = copying->bytes + start;
	const size_t n = copying->n_runs;

	if (n > 0 && end_of(copying, &copying->local[n - 1]) == start) {
		copying->local[n - 1].iov_len += end - start;
		copying->remote[n - 1].iov_len += end - start;
		return;
	}
	if (n == MAX_RUNS)
		read_runs(copying);
	if (copying->ended)
		return;
	void *remote = (void *)(uintptr_t)(copying->address + start);
	copying->local[copying->n_runs] = (struct iovec){bytes, end - start};
	copying->remote[copying->n_runs++] = (struct iovec){remote, end - start};
}

// The bits are not set to 0 before there is a gap: most copies have none.
static void note_missing(struct resident_gaps *gaps, size_t page)
{
	if (page >= gaps->n_pages)
		return;
	if (gaps->count++ == 0)
		memset(gaps->are_missing, 0, (gaps->n_pages + 63) / 64 * sizeof(uint64_t));
	gaps->are_missing[page / 64] |= 1ull << page % 64;
}

// Reads the pages that are resident. False if it is not known which are.
static bool copy_pages(struct resident *resident, struct copying *copying)
{
	const uint64_t page_bytes = resident->page_bytes;
	const uint64_t first = copying->address / page_bytes;
	const uint64_t n_pages = (copying->address + copying->size - 1) / page_bytes - first + 1;
	uint64_t entries[MAX_ENTRIES];

	copying->gaps->n_pages = (uint32_t)order_min(n_pages, RESIDENT_MAX_PAGES);
	for (size_t page = 0, at = 0; page < n_pages && !copying->ended;) {
		const size_t n = read_entries(resident, copying->tid, first + page, entries,
		                              order_min(n_pages - page, MAX_ENTRIES));
		if (n == 0)
			return false;
		for (size_t i = 0; i < n && !copying->ended; i++, page++) {
			const uint64_t next = (first + page + 1) * page_bytes - copying->address;
			const size_t end = order_min(next, copying->size);
			if (entries[i] & PAGE_IS_PRESENT)
				add_run(copying, at, end);
			else
				note_missing(copying->gaps, page);
			at = end;
		}
	}
	read_runs(copying);
	return true;
}

static size_t copy(struct resident *resident, int tid, uint64_t address, void *bytes, size_t size,
                   struct resident_gaps *ret_gaps)
{
	struct copying copying; // not set to 0 as a whole: a thread may be held

	ret_gaps->count = 0;
	ret_gaps->page_shift = (uint8_t)__builtin_ctzll(resident->page_bytes);
	ret_gaps->before = (uint32_t)(address % resident->page_bytes);
	if (size == 0 || address > UINT64_MAX - size)
		return 0;
	copying.tid = tid;
	copying.address = address;
	copying.bytes = bytes;
	copying.size = size;
	copying.n_runs = copying.end = 0;
	copying.ended = false;
	copying.gaps = ret_gaps;
	if (!copy_pages(resident, &copying)) {
		if (!resident->hidden)
			return 0;
		ret_gaps->count = copying.n_runs = copying.end = 0;
		copying.ended = false;
		add_run(&copying, 0, size);
		read_runs(&copying);
	}
	if (!copying.ended)
		return size;
	resident_cut_gaps(ret_gaps, copying.end);
	return copying.end;
}

size_t resident_copy(struct resident *resident, int tid, uint64_t address, void *bytes, size_t size,
                     struct resident_gaps *ret_gaps)
{
	struct resident once;

	if (resident)
		return copy(resident, tid, address, bytes, size, ret_gaps);
	resident_init(&once, tid);
	const size_t n = copy(&once, tid, address, bytes, size, ret_gaps);
	resident_deinit(&once);
	return n;
}

// Returns the page of a place in the copy.
static size_t page_of(const struct resident_gaps *gaps, size_t at)
{
	return (gaps->before + at) >> gaps->page_shift;
}

static bool is_missing(const struct resident_gaps *gaps, size_t page)
{
	return page < gaps->n_pages && gaps->are_missing[page / 64] >> page % 64 & 1;
}

bool resident_has_gap(const struct resident_gaps *gaps, size_t at, size_t size)
{
	if (gaps->count == 0 || size == 0)
		return false;
	const size_t last = page_of(gaps, at + size - 1);
	for (size_t page = page_of(gaps, at); page <= last; page++)
		if (is_missing(gaps, page))
			return true;
	return false;
}

// Returns where the page begins in the copy.
static size_t start_of(const struct resident_gaps *gaps, size_t page)
{
	const size_t start = page << gaps->page_shift;

	return start > gaps->before ? start - gaps->before : 0;
}

size_t resident_first_gap(const struct resident_gaps *gaps, size_t size)
{
	const size_t n_pages = size == 0 ? 0 : page_of(gaps, size - 1) + 1;

	for (size_t page = 0; gaps->count > 0 && page < n_pages; page++)
		if (is_missing(gaps, page))
			return start_of(gaps, page);
	return size;
}

size_t resident_last_gap(const struct resident_gaps *gaps, size_t size)
{
	size_t page = size == 0 ? 0 : page_of(gaps, size - 1) + 1;

	if (gaps->count == 0 || page == 0 || !is_missing(gaps, page - 1))
		return size;
	while (page > 0 && is_missing(gaps, page - 1))
		page--;
	return start_of(gaps, page);
}

void resident_cut_gaps(struct resident_gaps *gaps, size_t size)
{
	const size_t last = size == 0 ? 0 : page_of(gaps, size - 1);
	const size_t n_pages = size == 0 ? 0 : order_min(last + 1, gaps->n_pages);
	size_t count = 0;

	for (size_t i = 0; gaps->count > 0 && i < n_pages; i += 64) {
		const uint64_t kept = n_pages - i >= 64 ? UINT64_MAX : (1ull << (n_pages - i)) - 1;
		count += (size_t)__builtin_popcountll(gaps->are_missing[i / 64] & kept);
	}
	gaps->count = count;
}

bool resident_read(struct resident *resident, int tid, uint64_t address, void *bytes, size_t size)
{
	struct resident_block block = {address, bytes, size, false};
	struct resident_gaps gaps;

	if (!resident || !resident->is_calm || size == 0)
		return resident_copy(resident, tid, address, bytes, size, &gaps) == size &&
		       gaps.count == 0;
	resident_read_blocks(resident, tid, &block, 1);
	return block.is_read;
}

enum {
	MAX_BLOCKS = 128,
	MAX_AT_ONCE = 64, // pages of one call: a page more costs much less than another call
	MAX_AHEAD_NS = 200000,
	MAX_OFTEN_NS = 2000000,
};

static uint64_t last_page(const struct resident *resident, const struct resident_block *block)
{
	return (block->address + block->size - 1) / resident->page_bytes;
}

// Returns how many pages to ask for at once: from `page`, which the first block needs, to the last
// one that any of the blocks needs before the first that lies too far away.
static uint64_t count_needed(const struct resident *resident, uint64_t page,
                             const struct resident_block *blocks, size_t n)
{
	uint64_t last = page;

	for (size_t i = 0; i < n; i++) {
		const uint64_t end = last_page(resident, &blocks[i]);
		if (blocks[i].size == 0 || end < last)
			continue;
		if (end - page >= MAX_AT_ONCE)
			break;
		last = end;
	}
	return last - page + 1;
}

static void ask_for_pages(struct resident *resident, int tid, uint64_t page, uint64_t n,
                          struct resident_stretch *ret)
{
	uint64_t entries[MAX_AT_ONCE];
	const size_t n_read = read_entries(resident, tid, page, entries, n);

	*ret = (struct resident_stretch){.first = page, .n = n};
	if (n_read == 0 && resident->hidden)
		ret->are_there = UINT64_MAX;
	for (size_t i = 0; i < n_read; i++)
		ret->are_there |= (entries[i] & PAGE_IS_PRESENT) >> 63 << i;
}

static bool has_page(const struct resident_stretch *stretch, uint64_t page)
{
	return page - stretch->first < stretch->n;
}

// Finds the stretch that the page is in, or else the place for a new one.
static bool find_stretch(const struct resident_pages *known, uint64_t page, size_t *ret_place,
                         struct resident_stretch *ret)
{
	const size_t n = known->n;
	size_t i = known->latest;

	if (!has_page(&known->items[i], page))
		for (i = 0; i < n && !has_page(&known->items[i], page); i++)
			;
	*ret_place = i % RESIDENT_MAX_STRETCHES; // of so many the first was asked for long ago
	*ret = known->items[*ret_place];
	return i < n && has_page(ret, page);
}

// True if the page is in memory. `blocks`: the one that needs it, and the n - 1 after it, whose
// pages are asked for in the same call. A signal handler may do the same meanwhile (held_time.h):
// after that, nothing that was read of *known holds.
static bool is_page_there(struct resident *resident, int tid, uint64_t page,
                          const struct resident_block *blocks, size_t n,
                          struct resident_pages *known)
{
	struct resident_stretch stretch;
	size_t place;

	if (!find_stretch(known, page, &place, &stretch)) {
		if (known->is_wide)
			ask_for_pages(resident, tid, page - page % MAX_AT_ONCE, MAX_AT_ONCE,
			              &stretch);
		else
			ask_for_pages(resident, tid, page, count_needed(resident, page, blocks, n),
			              &stretch);
		known->items[place] = stretch;
		known->n = place + 1;
	}
	known->latest = place;
	return stretch.are_there >> (page - stretch.first) & 1;
}

// True if all pages of the first of n blocks are in memory.
static bool is_there(struct resident *resident, int tid, const struct resident_block *blocks,
                     size_t n, struct resident_pages *known)
{
	const uint64_t page_bytes = resident->page_bytes;

	if (blocks->size == 0 || blocks->address > UINT64_MAX - blocks->size)
		return false;
	const uint64_t last = last_page(resident, blocks);
	for (uint64_t page = blocks->address / page_bytes; page <= last; page++)
		if (!is_page_there(resident, tid, page, blocks, n, known))
			return false;
	return true;
}

// Reads n blocks, MAX_BLOCKS at most. A call ends at a block that cannot be read: that one is left
// out, and the next call begins behind it.
static void read_blocks(int tid, struct resident_block **blocks, size_t n)
{
	struct iovec local[MAX_BLOCKS], remote[MAX_BLOCKS];

	for (size_t i = 0; i < n; i++) {
		local[i] = (struct iovec){blocks[i]->bytes, blocks[i]->size};
		remote[i] = (struct iovec){(void *)(uintptr_t)blocks[i]->address, blocks[i]->size};
	}
	for (size_t done = 0; done < n; done++) {
		const ssize_t size =
		    process_vm_readv(tid, local + done, n - done, remote + done, n - done, 0);
		size_t left = size > 0 ? size : 0;
		for (; done < n && left >= blocks[done]->size; done++) {
			left -= blocks[done]->size;
			blocks[done]->is_read = true;
		}
	}
}

static void forget(struct resident_pages *pages)
{
	pages->n = pages->latest = 0;
	pages->items[0].n = 0;
}

static bool is_fresh(const struct resident *resident)
{
	return resident->ahead_ns && clock_now_ns() - resident->ahead_ns < MAX_AHEAD_NS;
}

void resident_look_ahead(struct resident *resident, int tid, const struct resident_block *blocks,
                         size_t n)
{
	if (!is_fresh(resident)) {
		forget(&resident->ahead);
		resident->ahead_ns = clock_now_ns();
	}
	for (size_t i = 0; i < n; i++)
		is_there(resident, tid, &blocks[i], n - i, &resident->ahead);
}

// Reads those of the blocks whose pages are there, as `before` (which may be NULL) or `now` has it.
static void read_known(struct resident *resident, int tid, struct resident_pages *before,
                       struct resident_pages *now, struct resident_block *blocks, size_t n)
{
	struct resident_block *there[MAX_BLOCKS];
	size_t n_there = 0;

	for (size_t i = 0; i < n; i++) {
		blocks[i].is_read = false;
		// A page that was not there a moment ago may have come since.
		if ((before && is_there(resident, tid, &blocks[i], n - i, before)) ||
		    is_there(resident, tid, &blocks[i], n - i, now))
			there[n_there++] = &blocks[i];
		if (n_there == MAX_BLOCKS || i + 1 == n) {
			read_blocks(tid, there, n_there);
			n_there = 0;
		}
	}
}

// Returns what may be believed of pages; NULL: nothing.
static struct resident_pages *believed(struct resident *resident)
{
	if (!resident->is_calm)
		return is_fresh(resident) ? &resident->ahead : NULL;
	const int64_t now_ns = clock_now_ns();
	if (now_ns - resident->often_ns >= MAX_OFTEN_NS) {
		forget(&resident->often);
		resident->often.is_wide = true;
		resident->often_ns = now_ns;
	}
	return &resident->often;
}

void resident_read_blocks(struct resident *resident, int tid, struct resident_block *blocks,
                          size_t n)
{
	struct resident_pages now;

	forget(&now);
	now.is_wide = false;
	read_known(resident, tid, believed(resident), &now, blocks, n);
}

void resident_read_often(struct resident *resident, int tid, struct resident_block *blocks,
                         size_t n)
{
	const bool was_calm = resident_set_calm(resident, true);

	resident_read_blocks(resident, tid, blocks, n);
	resident_set_calm(resident, was_calm);
}
