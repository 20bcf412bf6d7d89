// SPDX-License-Identifier: MIT
// other_stacks: the places outside its own stack from which a thread's walks have read. Callers lie
// there in programs that call from one stack to another: OCaml 5's fibers, split stacks, Rust's
// stacker, SBCL.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	OTHER_STACKS_MAX = 24,
	OTHER_STACKS_MAX_BYTES = 16 << 20, // of all of them, in one copy
	OTHER_STACKS_FIRST_BYTES = 16 << 10,
	// What lies so near to a known place is taken to belong to the same stack.
	OTHER_STACKS_NEAR_BYTES = 64 << 10,
};

struct other_stack {
	uint64_t start;
	uint32_t bytes;
	uint8_t uses;  // rises with each walk that reads it, and falls with each other one
	bool was_read; // by the last walk
};

// Belongs to one thread.
struct other_stacks {
	struct other_stack items[OTHER_STACKS_MAX];
	size_t n;
	uint32_t n_learned; // changes with each call of other_stacks_learn that adds something
};

// Adds the address of memory that a walk needed and did not have. `stacks` is NULL at first, and
// memory of its own afterwards, to be freed with free(3). With as many as are kept, the least used
// one is dropped.
void other_stacks_learn(struct other_stacks **stacks, uint64_t address);

// Notes that a walk is over. Drops the places that have not been read for some time.
void other_stacks_note_walk(struct other_stacks *stacks);