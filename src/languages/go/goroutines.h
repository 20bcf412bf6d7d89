// SPDX-License-Identifier: MIT
// goroutines: reads all goroutines of a Go program while it runs.
//
// The runtime lists every goroutine (runtime.allgs). One that a thread runs is seen in the thread's
// sample; the others' stacks are copied without stopping anything (goroutine_copies.h).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "go_thread.h"
#include "language_tasks.h"

struct go_memory;
struct go_program;

struct goroutine_list {
	struct task *items; // some of those that are alive, by address (goroutine_list_next)
	size_t count, capacity;
	uint64_t n_left_out; // not read, as there are too many

	uint64_t *listed;      // addresses, in the runtime's order
	uint64_t *sorted_from; // `listed` as it was when `sorted` was made
	size_t n_sorted_from, sorted_from_capacity;
	uint64_t *sorted; // addresses, sorted
	size_t n_listed, listed_capacity, sorted_capacity;
	size_t n_read;  // how many of the sorted ones were read
	uint8_t *bytes; // copies of several struct g
};

// Frees what the list owns. A zeroed list is empty.
void goroutine_list_deinit(struct goroutine_list *list);

// Reads the addresses of all goroutines' structures. False, with an empty list, if the runtime's
// list cannot be read.
bool goroutine_list_read(struct goroutine_list *list, const struct go_program *program,
                         const struct go_memory *memory);

// Reads the next few hundred structures: until the next call, `items` are those of them that are
// alive. (A program may have too many to keep them all.) False if there are no more.
bool goroutine_list_next(struct goroutine_list *list, const struct go_program *program,
                         const struct go_memory *memory);

// Reads the goroutine whose struct g is at the address. False if that cannot be read, or is not
// one.
bool goroutine_read(const struct go_program *program, const struct go_memory *memory,
                    uint64_t address, struct task *ret);

// Does the same with a copy of it. False if it is not one.
bool goroutine_parse(const struct go_program *program, const uint8_t *bytes, uint64_t address,
                     struct task *ret);

// True if its stack and its labels are where `other` says, and no thread can have run it in
// between.
bool goroutine_is_as(const struct task *goroutine, const struct task *other);

// Returns why it waits, in the runtime's words; "waiting" if these are not known.
const char *goroutine_reason(const struct go_program *program, const struct task *goroutine);

// Reads from the struct m at the address its thread's id, in the target's pid namespace, and the
// address of the struct g that it runs, or 0. False if it cannot be read.
bool goroutine_thread(const struct go_program *program, const struct go_memory *memory, uint64_t m,
                      uint64_t *ret_tid, uint64_t *ret_g);
