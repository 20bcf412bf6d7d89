// SPDX-License-Identifier: MIT
// top_model: what threads, functions and waits have taken of a window of time, added up from spans.
//
// All sums are ticks, as in every profile: those of a window are the same as those of
// `profiler report --from --to`. Nothing here knows a process or a terminal.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"
#include "wait_kind.h"

struct modules;
struct symbols;

enum { TOP_HISTORY_CELLS = 20, TOP_MAX_NODES = 100000 };

#define TOP_NONE UINT32_MAX
#define TOP_HISTORY_NS (INT64_C(1000000000) * TOP_HISTORY_CELLS)

// Where it comes from, all borrowed. Times count from the recording's start.
struct top_input {
	const struct profile *profile;
	const struct modules *modules;
	const struct symbols *symbols;
	const struct span
	    *spans; // at least those of the window and of the history, by thread and time
	size_t n_spans;
	const bool *selected; // of the profile's samples; NULL: all
	int64_t from_ns, to_ns;
	bool with_tree;
};

struct top_share {
	uint64_t count; // ticks
	uint64_t kinds[N_WAIT_KINDS];
};

struct top_thread {
	uint32_t thread; // in the profile
	struct top_share share;
	uint32_t sample; // its last one in the window; TOP_NONE: none
	enum wait_kind now;
	int64_t for_ns;  // that it has been in that one state and stack
	bool never_woke; // since it was seen first
	bool ended;
	uint8_t history[TOP_HISTORY_CELLS]; // a second each, the last one last: the kind that took
	                                    // most of it; N_WAIT_KINDS: nothing
};

// A function, or a place in code without a name, or why a stack has no frames.
struct top_function {
	uint32_t id; // for top_function_name
	uint64_t self;
	struct top_share total; // of stacks in which it stands, each tick once
};

// What threads wait for: the same kind, call and descriptor; of a lock, whoever holds it.
struct top_wait {
	enum wait_kind kind;
	uint32_t wait; // in the profile: the first of the same thing
	uint32_t held; // the one that says who held it last; WAIT_NONE: none does
	uint64_t count;
	size_t n_threads;
	int64_t longest_ns; // one sleep within the window
	int64_t held_until_ns;
	uint32_t sample; // of the longest
};

// A call path; the first node is the root of all.
struct top_node {
	uint32_t id;                                // of the function
	uint32_t parent, first_child, next_sibling; // TOP_NONE: none
	uint64_t self, total;
};

struct top_model {
	struct top_input input;
	struct top_share share; // of all
	struct top_thread *threads;
	size_t n_threads;
	struct top_function *functions; // by self, the most first
	size_t n_functions;
	struct top_wait *waits; // the most first
	size_t n_waits;
	struct top_node *nodes;
	size_t n_nodes, nodes_capacity;
	uint8_t *kinds; // enum wait_kind of each sample that counts
};

void top_model_init(struct top_model *ret, const struct top_input *input);
void top_model_deinit(struct top_model *model);

// The name of the function; clean text, owned by the caller.
char *top_function_name(const struct top_model *model, uint32_t id)
    __attribute__((returns_nonnull));

// The function in which the thread with the sample is, as its author knows it: the innermost of the
// program's own, or the leaf. Likewise.
char *top_where(const struct top_model *model, uint32_t sample) __attribute__((returns_nonnull));

// What it waits for: the system call with its descriptor; "" where it runs. Likewise.
char *top_waits_for(const struct top_model *model, uint32_t wait) __attribute__((returns_nonnull));

// The same of a row, without who holds it; and who held it last, "" if nobody is known. Likewise.
char *top_wait_thing(const struct top_model *model, const struct top_wait *row)
    __attribute__((returns_nonnull));
char *top_wait_holder(const struct top_model *model, const struct top_wait *row)
    __attribute__((returns_nonnull));

// The names of the sample's stack, leaf first, `lines` with the source's file and line; the array
// and the names are the caller's to free.
char **top_stack(const struct top_model *model, uint32_t sample, bool lines, size_t *ret_count);

// One letter for a kind: R L C F S E T P X; ' ' for none.
char top_kind_letter(enum wait_kind kind);
