// SPDX-License-Identifier: MIT
#include "resident.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"
#include "proc.h"

enum {
	MAX_ENTRIES = 512,                // how many are read at once
	MAX_RUNS = RESIDENT_MAX_GAPS - 1, // of pages that are resident, each after a gap
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
		resident->ahead_ns = 0;
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

// The stretches of a copy that are to be read, as offsets in it.
struct runs {
	struct resident_gap items[MAX_RUNS];
	size_t count;
};

// Adds a stretch; leaves out what comes after MAX_RUNS.
static void add_run(struct runs *runs, size_t start, size_t end)
{
	if (runs->count > 0 && runs->items[runs->count - 1].end == start)
		runs->items[runs->count - 1].end = end;
	else if (runs->count < MAX_RUNS)
		runs->items[runs->count++] = (struct resident_gap){start, end};
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

// Finds the runs of resident pages. False if it is not known which pages are resident.
static bool find_runs(struct resident *resident, int tid, uint64_t address, size_t size,
                      struct runs *ret)
{
	const uint64_t page_bytes = resident->page_bytes;
	const uint64_t last = (address + size - 1) / page_bytes;
	uint64_t entries[MAX_ENTRIES];

	for (size_t at = 0; at < size;) {
		const uint64_t page = (address + at) / page_bytes;
		const size_t n = read_entries(resident, tid, page, entries,
		                              min_size(last - page + 1, MAX_ENTRIES));
		if (n == 0)
			return false;
		for (size_t i = 0; i < n; i++) {
			const size_t end = min_size((page + i + 1) * page_bytes - address, size);
			if (entries[i] & PAGE_IS_PRESENT)
				add_run(ret, at, end);
			at = end;
		}
	}
	return true;
}

// Reads the runs in one call. Returns the size of the copy up to where it cannot be read, or up to
// the end of the last run.
static size_t read_runs(int tid, uint64_t address, uint8_t *bytes, const struct runs *runs,
                        bool *ret_all)
{
	struct iovec local[MAX_RUNS], remote[MAX_RUNS];

	for (size_t i = 0; i < runs->count; i++) {
		const struct resident_gap *run = &runs->items[i];
		const size_t size = run->end - run->start;
		local[i] = (struct iovec){bytes + run->start, size};
		remote[i] = (struct iovec){(void *)(uintptr_t)(address + run->start), size};
	}
	const ssize_t n = process_vm_readv(tid, local, runs->count, remote, runs->count, 0);
	size_t left = n > 0 ? n : 0, end = 0;
	for (size_t i = 0; i < runs->count && left > 0; i++) {
		const size_t part = min_size(left, local[i].iov_len);
		end = runs->items[i].start + part;
		left -= part;
	}
	*ret_all = runs->count == 0 || end == runs->items[runs->count - 1].end;
	return end;
}

static void note_gaps(const struct runs *runs, size_t size, struct resident_gaps *ret)
{
	size_t at = 0;

	ret->count = 0;
	for (size_t i = 0; i < runs->count; i++) {
		const struct resident_gap *run = &runs->items[i];
		if (run->start >= size)
			return;
		if (run->start > at)
			ret->items[ret->count++] = (struct resident_gap){at, run->start};
		at = run->end;
	}
	if (at < size)
		ret->items[ret->count++] = (struct resident_gap){at, size};
}

static size_t copy(struct resident *resident, int tid, uint64_t address, void *bytes, size_t size,
                   struct resident_gaps *ret_gaps)
{
	struct runs runs = {.count = 0};
	bool all;

	ret_gaps->count = 0;
	if (size == 0 || address > UINT64_MAX - size)
		return 0;
	if (!find_runs(resident, tid, address, size, &runs)) {
		if (!resident->hidden)
			return 0;
		runs.count = 0;
		add_run(&runs, 0, size);
	}
	const size_t end = read_runs(tid, address, bytes, &runs, &all);
	size = all ? size : end;
	note_gaps(&runs, size, ret_gaps);
	return size;
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

bool resident_read(struct resident *resident, int tid, uint64_t address, void *bytes, size_t size)
{
	struct resident_gaps gaps;

	return resident_copy(resident, tid, address, bytes, size, &gaps) == size && gaps.count == 0;
}

enum {
	MAX_BLOCKS = 128,
	MAX_AT_ONCE = 64, // pages of one call: a page more costs much less than another call
	MAX_AHEAD_NS = 200000,
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
		const uint64_t n_pages = count_needed(resident, page, blocks, n);
		ask_for_pages(resident, tid, page, n_pages, &stretch);
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

void resident_read_blocks(struct resident *resident, int tid, struct resident_block *blocks,
                          size_t n)
{
	struct resident_pages now, *ahead = is_fresh(resident) ? &resident->ahead : NULL;
	struct resident_block *there[MAX_BLOCKS];
	size_t n_there = 0;

	forget(&now);
	for (size_t i = 0; i < n; i++) {
		blocks[i].is_read = false;
		// A page that was not there a moment ago may have come since.
		if ((ahead && is_there(resident, tid, &blocks[i], n - i, ahead)) ||
		    is_there(resident, tid, &blocks[i], n - i, &now))
			there[n_there++] = &blocks[i];
		if (n_there == MAX_BLOCKS || i + 1 == n) {
			read_blocks(tid, there, n_there);
			n_there = 0;
		}
	}
}
