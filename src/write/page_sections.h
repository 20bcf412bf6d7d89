// SPDX-License-Identifier: MIT
// page_sections: a page's data as its script reads them (page/data.js): gzip of sections, each a
// number and a length (32 bits, little-endian) with that many bytes. Numbers in them are varints as
// in profiler-record(5), tables go by columns, strings end in a NUL. A reader skips sections that
// it does not know.
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
	PAGE_FRAMES,   // their number; name, file, module, line, flags
	PAGE_NODES,    // their number, in preorder; levels to go up before each; frame
	PAGE_THREADS,  // their number; tid, pid, birth, death + 1 (0: lives), name, runs, flags
	PAGE_WAITS,    // their number; system call or why a goroutine waits, descriptor, labels
	// Their number; time since the last one's end, length, node, kind + PAGE_MAX_KINDS * wait.
	PAGE_RUNS,
	PAGE_THREAD_NAMES, // strings, as the next one
	PAGE_WAIT_TEXTS,
};

// The flags of a thread.
enum { PAGE_MAX_KINDS = 16 }; // a number that page/data.js knows

enum { PAGE_THREAD_SLEPT = 1, PAGE_THREAD_BASE = 2, PAGE_THREAD_GOROUTINE = 4 };

// How many nanoseconds one of the page's units of time has.
int64_t page_unit_ns(const struct page *page);

// Writes all of it; `meta` is JSON. `order` is page_tree_order's. Errors of the stream stay in its
// indicator.
struct error *page_sections_write(const struct page *page, const uint32_t *order, const char *meta,
                                  FILE *stream);
