// SPDX-License-Identifier: MIT
// resident: reads memory of a process without waiting for a page that is not there.
//
// A page that is not in memory (swapped out, of a file, registered with userfaultfd(2), or never
// touched) is fetched when it is read: process_vm_readv(2) then waits for a disk, a file server or
// another program, for as long as that takes, in a sleep that not even SIGKILL ends. The thread
// whose stack it is would be held for that time. So /proc/PID/pagemap is asked first which pages
// are there, and only those are read. A page may still leave in the microseconds between.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RESIDENT_MAX_PAGES = 4160, // whose gaps are told: those of 16 MiB, and a few more
	RESIDENT_MAX_STRETCHES = 64,
};

// The parts of a copy that were not read: pages, since that is what is in memory or not. A stack of
// large buffers that are hardly used has a gap in each of them, so all are noted, with a bit.
struct resident_gaps {
	size_t count;                                  // of pages that were not read
	uint64_t are_missing[RESIDENT_MAX_PAGES / 64]; // a bit for each; not set if count is 0
	uint32_t n_pages;                              // that have a bit
	uint32_t before; // bytes of the first page that lie before the copy
	uint8_t page_shift;
};

// Pages that were asked for together.
struct resident_stretch {
	uint64_t first, n;
	uint64_t are_there; // a bit for each
};

struct resident_pages {
	struct resident_stretch items[RESIDENT_MAX_STRETCHES];
	size_t n;
	size_t latest; // that was looked at
	bool is_wide;  // those around a page are asked for as well
};

// The pages of one process.
struct resident {
	int pid;
	int fd; // of its pagemap; -1: to be opened
	uint64_t page_bytes;
	uint64_t program;            // as last told (resident_note_program)
	bool hidden;                 // the kernel does not show it: every page is taken to be there
	struct resident_pages ahead; // what resident_look_ahead has found
	int64_t ahead_ns;            // when the first of it was asked for
	struct resident_pages often; // the same for resident_read_often
	int64_t often_ns;
	bool is_calm; // resident_set_calm
};

void resident_init(struct resident *resident, int pid);
void resident_deinit(struct resident *resident);

// Closes the pagemap if `program`, a number that is another one after each exec, has changed. Call
// it in each tick: an open one keeps showing the memory of the program that it was opened for, or
// nothing, once that memory is gone.
void resident_note_program(struct resident *resident, uint64_t program);

// Opens the pagemap through the thread tid of the process, if it is not open.
void resident_open(struct resident *resident, int tid);

// Waits until the process's memory can be read: while its mmap_lock is taken, nobody can, and
// nobody should be held meanwhile.
void resident_await(struct resident *resident, int tid);

// Copies those of the `size` bytes at `address` of the thread's memory that are resident to the
// same places in `bytes`. The others are gaps, where nothing is written. Returns the size of the
// copy with its gaps, which ends early at memory that cannot be read; 0: nothing could be read. Of
// what comes after RESIDENT_MAX_PAGES, no gap is told. `resident` may be NULL: the pagemap is then
// opened for this call.
size_t resident_copy(struct resident *resident, int tid, uint64_t address, void *bytes, size_t size,
                     struct resident_gaps *ret_gaps);

// True if some of the `size` bytes from that place in the copy on were not read.
bool resident_has_gap(const struct resident_gaps *gaps, size_t at, size_t size);

// Returns where the first gap of a copy of that size begins; `size`: it has none.
size_t resident_first_gap(const struct resident_gaps *gaps, size_t size);

// Returns where the gap begins with which a copy of that size ends; `size`: it ends with none.
size_t resident_last_gap(const struct resident_gaps *gaps, size_t size);

// Forgets the gaps that do not lie within the first `size` bytes of the copy.
void resident_cut_gaps(struct resident_gaps *gaps, size_t size);

// Reads all of the bytes. False if they are not all resident, or cannot be read.
bool resident_read(struct resident *resident, int tid, uint64_t address, void *bytes, size_t size);

// One of many small pieces of memory.
struct resident_block {
	uint64_t address;
	void *bytes;
	size_t size;  // 0: nothing is to be read
	bool is_read; // all of it
};

// Asks which pages of the blocks are in memory, for a resident_read_blocks to come: a thread that
// is held for that is then not held for the asking, too. Only that a page is there is believed, and
// for 200 us; else it is asked for anew.
void resident_look_ahead(struct resident *resident, int tid, const struct resident_block *blocks,
                         size_t n);

// Reads those of the blocks that are resident, with as few calls as possible.
void resident_read_blocks(struct resident *resident, int tid, struct resident_block *blocks,
                          size_t n);

// Does the same for places that are read again and again, while nobody is held: that a page is
// there is believed for 2 ms. Not for signal handlers.
void resident_read_often(struct resident *resident, int tid, struct resident_block *blocks,
                         size_t n);

// Says that nobody is held who would have to wait for a page, and that no signal handler reads:
// resident_read and resident_read_blocks are as resident_read_often, until it is called anew.
// Returns what it was before, for the caller to restore.
static inline bool resident_set_calm(struct resident *resident, bool calm)
{
	const bool was_calm = resident->is_calm;

	resident->is_calm = calm;
	return was_calm;
}
