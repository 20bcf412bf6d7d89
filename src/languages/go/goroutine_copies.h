// SPDX-License-Identifier: MIT
// goroutine_copies: copies, with few system calls, what is to be known of many goroutines that no
// thread runs: their stacks, what they wait for, their labels.
//
// Nothing of that can change while no thread runs the goroutine, and the collector frees nothing of
// it. So a copy is right if the goroutine's structure says the same before and after copying.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "go_thread.h"
#include "go_waits.h"
#include "goroutines.h"
#include "snapshot.h"

struct go_memory;
struct go_program;

struct goroutine_copied {
	struct task_copy copy;   // its bytes are those of the copies
	struct go_thread thread; // what the snapshot holds of the thread that it keeps, if any
	struct go_wait wait;
	size_t at, own_at;  // where the stack, and its thread's own, are among the bytes
	size_t stack_bytes; // 0: it is not where it says
};

// Zero is empty.
struct goroutine_copies {
	struct goroutine_copied *items;
	size_t count, capacity;
	size_t used; // of the bytes
	uint8_t *bytes;
	size_t bytes_capacity;
	uint8_t *structures; // those read after copying
	size_t structures_capacity;
	struct go_wait_hints hints;
};

void goroutine_copies_deinit(struct goroutine_copies *copies);

// Adds one that is to be copied, as it was just read. False if there is no room for more: make and
// clear those that are there first.
bool goroutine_copies_add(struct goroutine_copies *copies, const struct task *goroutine,
                          uint32_t id);

// Copies all that were added.
void goroutine_copies_make(struct goroutine_copies *copies, const struct go_program *program,
                           const struct go_memory *memory);

// Forgets all of them.
void goroutine_copies_clear(struct goroutine_copies *copies);
