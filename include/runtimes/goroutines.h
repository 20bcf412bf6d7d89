// SPDX-License-Identifier: MIT
// goroutines: all goroutines of a Go program, read while it runs.
//
// The runtime lists every goroutine that there is (runtime.allgs). The stack of one that runs on no
// thread cannot change, so it is right if its structure says the same before it was copied and
// afterwards; nothing is stopped. One that runs is seen by its thread's sample.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot.h"

struct go_memory;
struct go_program;

// runtime2.go, without the collector's bit.
enum goroutine_status {
	GOROUTINE_IDLE = 0, // being made
	GOROUTINE_RUNNABLE = 1,
	GOROUTINE_RUNNING = 2,
	GOROUTINE_SYSCALL = 3,
	GOROUTINE_WAITING = 4,
	GOROUTINE_DEAD = 6,
	GOROUTINE_COPYSTACK = 8, // its stack is being moved
	GOROUTINE_PREEMPTED = 9,
	GOROUTINE_LEAKED = 10, // waiting, and nobody can wake it
	GOROUTINE_DEAD_EXTRA = 11,
};

// One, as its structure said.
struct goroutine {
	uint64_t address; // of that
	uint64_t goid;
	uint64_t low, high;  // its stack
	uint64_t sp, pc, bp; // where it was left
	uint64_t m;          // the thread that runs it; 0: none
	uint64_t creator_pc, start_pc;
	uint64_t waiting; // the sudog that it waits by; 0: none
	uint32_t status;
	uint8_t reason; // why it waits, a number of the version's (go_program.h)
	uint8_t seq;    // changes whenever it is scheduled; the same for all where !has_seq
	bool has_seq;
	uint64_t locked_m; // the thread that alone may run it; 0: any may
	uint64_t labels;   // that the program has given it (go_labels.h); 0: none
	int64_t since_ns;  // CLOCK_MONOTONIC: it has waited since then or longer; 0: not known
};

struct goroutine_list {
	struct goroutine *items; // some of those that are alive, by address (goroutine_list_next)
	size_t count, capacity;
	uint64_t n_left_out;   // there are more than are read
	uint64_t n_unreadable; // their structures are not in memory, or are none

	uint64_t *listed;      // as the runtime lists them
	uint64_t *sorted_from; // that list as it was when `sorted` was made
	size_t n_sorted_from, sorted_from_capacity;
	uint64_t *sorted; // the same by address
	size_t n_listed, listed_capacity, sorted_capacity;
	size_t n_read;      // of the sorted ones
	uint8_t *bytes;     // of some structures that lie together
	uint8_t *stack;     // of the last one copied
	uint8_t *own_stack; // of its thread, if that is copied, too
	size_t stack_capacity, own_stack_capacity;
};

// A zeroed list is an empty one.
void goroutine_list_deinit(struct goroutine_list *list);

// Reads where the structures of all are. False: the runtime's list cannot be read; then the list is
// empty.
bool goroutine_list_read(struct goroutine_list *list, const struct go_program *program,
                         const struct go_memory *memory);

// Reads the next structures, some hundreds that lie together: items are those of them that are
// alive, until the next call. A program has too many to keep all. False: there are no more.
bool goroutine_list_next(struct goroutine_list *list, const struct go_program *program,
                         const struct go_memory *memory);

// Reads one whose structure is at that address. False: it cannot be read, or is none.
bool goroutine_read(const struct go_program *program, const struct go_memory *memory,
                    uint64_t address, struct goroutine *ret);

// True if its stack is where `other` says, and no one can have run it in between.
bool goroutine_is_as(const struct goroutine *goroutine, const struct goroutine *other);

enum goroutine_copy {
	GOROUTINE_COPIED,
	GOROUTINE_MOVED,      // it ran meanwhile
	GOROUTINE_UNREADABLE, // its stack is not in memory, or not where it says
};

// Copies the stack of one that no thread runs. The snapshot is the list's, until the next one.
enum goroutine_copy goroutine_copy(struct goroutine_list *list, const struct go_program *program,
                                   const struct go_memory *memory,
                                   const struct goroutine *goroutine, struct snapshot *ret);

// The thread (as the target numbers them) that struct m at the address is of, and the struct g that
// it runs, or 0. False: it cannot be read.
bool goroutine_thread(const struct go_program *program, const struct go_memory *memory, uint64_t m,
                      uint64_t *ret_tid, uint64_t *ret_g);
