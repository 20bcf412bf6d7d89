// SPDX-License-Identifier: MIT
// page_sections: writes a page's data as its script reads it (page/data.js): gzip of sections, each
// a number and a length (32 bits, little-endian) and that many bytes. Numbers in a section are
// varints as in profiler-record(5), tables are written column by column, strings end in a NUL. A
// reader skips sections that it does not know.
#pragma once

#include <stdint.h>
#include <stdio.h>

struct error;
struct page;

enum page_section {
	PAGE_META = 1, // JSON
	PAGE_NAMES,    // strings, as the next two
	PAGE_FILES,    //
	PAGE_MODULES,  //
	PAGE_FRAMES,   // how many; name, file, module, line, flags, short name
	PAGE_NODES,    // how many, in preorder; levels to go up before each; frame
	PAGE_THREADS,  // how many; tid, pid, birth, death + 1 (0: lives), name, runs, flags
	PAGE_WAITS,    // how many; system call or why a task waits, descriptor, labels
	// How many; time since the last one's end, length, node, kind + PAGE_MAX_KINDS * wait.
	PAGE_RUNS,
	PAGE_THREAD_NAMES, // strings, as the next one
	PAGE_WAIT_TEXTS,
	// What the time of threads counts, if not itself. How many; thread, a factor for the time
	// of running, of runnable and of all other kinds, in millionths, time of these kinds that
	// is in no run, and its node.
	PAGE_WEIGHTS,
};

enum { PAGE_MAX_KINDS = 16 }; // page/data.js has the same number

// The flags of a thread.
enum { PAGE_THREAD_SLEPT = 1, PAGE_THREAD_BASE = 2, PAGE_THREAD_TASK = 4 };

// Returns how many nanoseconds one of the page's units of time has.
int64_t page_unit_ns(const struct page *page);

// Writes the page's data; `meta` is JSON, `order` is from page_tree_order. The stream's error
// indicator keeps errors of writing.
struct error *page_sections_write(const struct page *page, const uint32_t *order, const char *meta,
                                  FILE *stream);
