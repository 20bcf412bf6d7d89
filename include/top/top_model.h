// SPDX-License-Identifier: MIT
// top_model: what threads, functions and waits have taken of a window of time, added up from spans.
//
// All sums are in samples, which count as the kernel's clocks say (weights.h), or as they are: then
// they equal those of `profiler report --from --to` for the same window. Nothing here knows of a
// process or a terminal.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu_waits.h"
#include "profile.h"
#include "wait_kind.h"

struct modules;
struct symbols;
struct top_own;
struct weights;

enum { TOP_HISTORY_CELLS = 20, TOP_MAX_NODES = 100000 };

#define TOP_NONE UINT32_MAX
// What stands for all stacks without the program's own functions.
#define TOP_ELSEWHERE "[not in your code]"
#define TOP_HISTORY_NS (INT64_C(1000000000) * TOP_HISTORY_CELLS)

// What of a window is added up.
struct top_choice {
	bool with_tree;
	bool hides_idle; // functions, tree and waits are without time that usually is idle, if
	                 // there is other time
	bool counts;     // samples count as they are, not as the kernel's clocks say
	bool shows_all;  // the tree has all frames; else without those that say nothing of the
	                 // program (top_own.h)
};

// What a model is made of, all borrowed. Times count from the recording's start.
struct top_input {
	const struct profile *profile;
	const struct modules *modules;
	const struct symbols *symbols;
	// Sorted by thread and time; at least those of the window and of the history.
	const struct span *spans;
	size_t n_spans;
	// By which samples are multiplied, for each thread (weights.h); NULL: they count as they
	// are.
	const struct weights *weights;
	const bool *selected; // of the profile's samples; NULL: all
	int64_t from_ns, to_ns;
	const struct cpu_log *cpu_log;
	const struct top_own *own;
	struct top_choice choice;
};

struct top_share {
	uint64_t count; // samples
	uint64_t idle;  // of these, those without work (sample_work.h)
	uint64_t kinds[N_WAIT_KINDS];
};

struct top_thread {
	uint32_t thread; // in the profile
	struct top_share share;
	uint32_t sample; // its last one in the window; TOP_NONE: none
	enum wait_kind now;
	int64_t for_ns;  // how long it has had the same state and stack
	bool never_woke; // since it was first seen
	bool ended;
	// The kind that took most of each second, the last second last; N_WAIT_KINDS: none.
	uint8_t history[TOP_HISTORY_CELLS];
};

// A function, a place in code without a name, or the reason why a stack has no frames.
struct top_function {
	uint32_t id;            // for top_function_full_name
	uint64_t self;          // samples with it as the leaf
	uint64_t own_self;      // with it as the innermost function of the program's own code, or
	                        // as the leaf, if there is no such code
	struct top_share total; // samples with it in the stack, each counted once
};

// Something that threads wait for: waits of the same kind, call and descriptor. For a lock they are
// the same whoever holds it; connections, if they lead to the same server.
struct top_wait {
	enum wait_kind kind;
	uint32_t wait;   // in the profile: the first wait for the same thing
	uint32_t held;   // the wait that tells who held it last; WAIT_NONE: none does
	bool is_several; // waits whose texts differ, by a holder or a number
	uint64_t count;
	size_t n_threads;
	int64_t longest_ns;    // the longest single sleep within the window
	int64_t held_until_ns; // when that wait was last seen
	uint32_t sample;       // of the longest sleep
};

// A call path; node 0 is the root of all.
struct top_node {
	uint32_t id;                                // of the function
	uint32_t parent, first_child, next_sibling; // TOP_NONE: none
	uint64_t self, total;
};

struct top_model {
	struct top_input input;
	struct top_share share;     // of the whole window
	uint64_t n_counted;         // samples in functions, tree and waits...
	struct top_share elsewhere; // ...of these, those without the program's own functions
	bool hides_idle;
	uint64_t n_ticks; // samples of a thread that was there all the time
	struct cpu_waits cpus;
	struct top_thread *threads;
	size_t n_threads;
	struct top_function *functions; // sorted by self, largest first
	size_t n_functions;
	struct top_wait *waits; // sorted by count, largest first
	size_t n_waits;
	struct top_node *nodes;
	size_t n_nodes, nodes_capacity;
	uint8_t *kinds; // enum wait_kind of each sample that counts...
	bool *no_work;  // ...and whether its thread had no work (sample_work.h)
};

void top_model_init(struct top_model *ret, const struct top_input *input);
void top_model_deinit(struct top_model *model);

// Returns the line about waits for CPUs (cpu_waits_text). The caller frees; NULL: there is none.
char *top_cpu_wait(const struct top_model *model);

// Returns the function's name in full: clean text, owned by the caller.
char *top_function_full_name(const struct top_model *model, uint32_t id)
    __attribute__((returns_nonnull));

// Returns the same with the file and the line (0: the line in which the function begins), or with
// the module, as in "query (app.py:13)", "poll (libc.so.6)". The caller owns it.
char *top_function_place(const struct top_model *model, uint32_t id, uint32_t line)
    __attribute__((returns_nonnull));

// True if the node stands for all stacks without the program's own functions.
bool top_is_elsewhere(const struct top_input *input, uint32_t id);

// Returns the function in which the sample's thread is, with its place, as the program's author
// knows it: the innermost of the program's own, or else the leaf. The caller owns it.
char *top_where(const struct top_model *model, uint32_t sample) __attribute__((returns_nonnull));

// Returns what a wait is for: the system call with its descriptor; "" for WAIT_NONE. The caller
// owns it.
char *top_waits_for(const struct top_model *model, uint32_t wait) __attribute__((returns_nonnull));

// Returns what such a text says in fewer words: "mutex 0x7f5..", "epoll_wait(epoll)", "poll". Takes
// the text over; the caller owns the result.
char *top_wait_text(char *call) __attribute__((returns_nonnull));

// Returns in few words what a sample waits for, and its labels in braces. The caller owns it.
char *top_sample_waits(const struct top_model *model, uint32_t sample)
    __attribute__((returns_nonnull));

// Return the same for a row, without the holder; and who held it last, "" if that is not known. The
// caller owns them.
char *top_wait_thing(const struct top_model *model, const struct top_wait *row)
    __attribute__((returns_nonnull));
char *top_wait_holder(const struct top_model *model, const struct top_wait *row)
    __attribute__((returns_nonnull));

// TOP_STACK_SHORT: without frames that say nothing of the program. TOP_STACK_PLACES: with files and
// lines.
enum top_stack_form { TOP_STACK_SHORT, TOP_STACK_PLACES, TOP_STACK_FULL_NAMES };

// Returns the names of the sample's stack, leaf first. The caller frees the array and each name.
char **top_stack(const struct top_model *model, uint32_t sample, enum top_stack_form form,
                 size_t *ret_count);

// Returns the kind's letter: R Q L C F S E T P X; ' ' for none.
char top_kind_letter(enum wait_kind kind);
