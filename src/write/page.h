// SPDX-License-Identifier: MIT
// page: what is shown by the page of its own (write_html): threads with their runs, stretches of
// time of one kind in one place of a tree of functions. Of one profile, or of two to be compared.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "page_tree.h"

struct error;
struct report;

// The page counts time in these, or in twice, four times... as long ones where the time is long.
enum { PAGE_UNIT_NS = 10000 };

struct page_wait {
	uint32_t what; // string of page->waits_text: the system call, or why a goroutine waits
	uint32_t descriptor; // likewise, and so are
	uint32_t labels;     // those of the sample; "" where there is none
};

struct page_run {
	int64_t start_ns, end_ns; // since the profile's first tick
	uint32_t node;
	uint32_t wait; // 0: none is known
	uint8_t kind;
};

struct page_thread {
	int tid, pid;
	uint32_t name;            // string
	int64_t birth_ns;         // since the first tick; 0: it was there
	int64_t death_ns;         // -1: it has not ended
	size_t first_run, n_runs; // in page->runs
	bool slept;               // it did not wake in all the time
	bool is_base;             // of the profile that the other one is compared with
	bool is_goroutine;        // or several; its name tells which, and not its tid
};

struct page {
	struct page_tree tree;
	struct string_table waits_text, thread_names;
	struct page_wait *waits; // the first one means none
	size_t n_waits, waits_capacity;
	struct hash_index wait_index;
	struct page_thread *threads;
	size_t n_threads, threads_capacity;
	struct page_run *runs; // by thread, in the order of time
	size_t n_runs, runs_capacity;
	int64_t end_ns;     // of the last run
	int64_t count_ns;   // without time: what a count of one has; else 0
	int64_t stretch_ns; // runs that are shorter are put together; 0: none are
	char *unit;         // without time: what is counted, clean text; NULL: samples
};

#define PAGE_MAX_SUM_NS (INT64_MAX / 2) // of what has no time; more than that is cut off

void page_init(struct page *page);
void page_deinit(struct page *page);

// Adds the report's timeline.
void page_add(struct page *page, const struct report *report, bool is_base);

// Puts short runs that lie close together into one of each sort, over longer and longer stretches
// of time, until no more than that are left, or each thread is one stretch (page_bounded.c).
void page_bound_runs(struct page *page, size_t max_runs);

// Without time: adds count * scale_ns to the node's own.
void page_add_self(struct page *page, uint32_t node, int64_t count, int64_t scale_ns);

// Makes a run of each node's own, one after the other, in one thread.
void page_add_self_runs(struct page *page);

// The node that stands for the frames that are left out below a stack's first max_frames.
uint32_t page_add_cut(struct page *page, uint32_t node, size_t max_frames);

// Adds a profile of pprof's (page_pprof.c), compressed or not, to an empty page; `name` is for
// messages. *ret_left_out: how many samples have a value below zero.
struct error *page_add_pprof(struct page *page, const char *name, const uint8_t *bytes, size_t size,
                             uint64_t *ret_left_out);

// Adds folded stacks (page_folded.c) to an empty page. Returns how many lines are none.
uint64_t page_add_folded(struct page *page, const char *text, size_t size);
