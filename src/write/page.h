// SPDX-License-Identifier: MIT
// page: what the HTML page shows (write_html): threads and their runs. A run is a stretch of time
// of one kind in one place of a tree of functions. A page shows one profile, or compares two.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "page_tree.h"
#include "wait_kind.h"
#include "weights.h"

struct error;
struct report;

// The page's unit of time; it is doubled until a long time fits.
enum { PAGE_UNIT_NS = 10000 };

// The kinds of a page's time: those of wait_kind.h, and waits for a client on a socket, which are
// idle; other waits on sockets are not.
enum { PAGE_KIND_CLIENT = N_WAIT_KINDS, N_PAGE_KINDS };

struct page_wait {
	uint32_t what;       // string of page->waits_text: the system call, or why a task waits
	uint32_t descriptor; // string of page->waits_text
	uint32_t labels;     // string of page->waits_text: those of the sample; "": it has none
};

struct page_run {
	int64_t start_ns, end_ns; // since the profile's first tick
	uint32_t node;
	uint32_t wait; // 0: none is known
	uint8_t kind;  // of N_PAGE_KINDS
};

struct page_thread {
	int tid, pid;
	uint32_t name;            // string
	int64_t birth_ns;         // since the first tick; 0: it was there
	int64_t death_ns;         // -1: it has not ended
	size_t first_run, n_runs; // in page->runs
	bool slept;               // it never woke during the profile, and had no work (wait_kind.h)
	bool is_base;             // of the profile that the other one is compared with
	bool is_task;             // or several; told apart by the name rather than the tid
	struct weights weights;   // of the time of its runs
	uint32_t unseen_node;     // of the time that no tick has seen
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
	int64_t end_ns;   // of the last run
	int64_t count_ns; // of a profile without time: the time that a count of one becomes; else 0
	int64_t stretch_ns; // shorter runs have been put together; 0: no runs have
	char *unit;         // of a profile without time: what is counted, clean text; NULL: samples
};

#define PAGE_MAX_SUM_NS (INT64_MAX / 2) // the largest sum without time; larger ones are cut to it

// Returns the kind's name for a page: that of wait_kind_name, or "client".
const char *page_kind_name(uint8_t kind);

// True if a thread has no work in time of that kind (wait_kind_has_no_work).
bool page_kind_is_idle(uint8_t kind);

// Returns the class of a run of that kind: its weight is weights.factor[class].
enum weight_class page_class_of(uint8_t kind);

void page_init(struct page *page);
void page_deinit(struct page *page);

// Adds the report's timeline.
void page_add(struct page *page, const struct report *report, bool is_base);

// Puts short runs that lie close together into one run of each sort. Does so over
// longer and longer stretches of time, until at most max_runs are left or each thread is one
// stretch.
void page_bound_runs(struct page *page, size_t max_runs);

// Adds count * scale_ns to the node's own sum; for profiles without time.
void page_add_self(struct page *page, uint32_t node, int64_t count, int64_t scale_ns);

// Makes a run of each node's own sum, one after the other, in one thread.
void page_add_self_runs(struct page *page);

// Returns the node that stands for the frames left out below a stack's first max_frames.
uint32_t page_add_cut(struct page *page, uint32_t node, size_t max_frames);

// Adds a pprof profile (page_pprof.c), compressed or not, to an empty page; `name` is for messages.
// Sets *ret_left_out to the number of samples left out because a value is below zero.
struct error *page_add_pprof(struct page *page, const char *name, const uint8_t *bytes, size_t size,
                             uint64_t *ret_left_out);

struct step;

// The state while folded stacks are added (page_folded.c), piece by piece.
struct page_folded {
	struct page *page; // borrowed
	uint32_t *frames;  // the frame of each name, by its number; UINT32_MAX: none yet
	size_t n_frames, frames_capacity;
	const char *last; // the last stack: in the text that is being added, or in `kept`
	size_t last_length;
	char *kept;
	size_t kept_capacity;
	struct step *steps; // of the last stack
	size_t n_steps, steps_capacity;
	uint64_t n_bad; // lines that are not folded stacks
};

// Begins to add folded stacks to an empty page; page_folded_end must follow.
void page_folded_begin(struct page_folded *folded, struct page *page);

// Adds the stacks of the text, which is whole lines; only the last one of all may lack its newline.
void page_folded_add(struct page_folded *folded, const char *text, size_t size);

// Makes the page whole. Returns how many lines were not folded stacks.
uint64_t page_folded_end(struct page_folded *folded);
