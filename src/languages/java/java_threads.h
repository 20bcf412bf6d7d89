// SPDX-License-Identifier: MIT
// java_threads: HotSpot's own threads: their kernel threads, what they wait for, and which of them
// owns a monitor.
//
// HotSpot lists the threads that can execute Java. The list is read again when an unknown thread is
// asked for, but for at most a thousandth of the time. What was read is checked when it is used:
// the structure of a thread that has ended may be another one's by then.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "java_layout.h"
#include "java_memory.h"

struct java_thread {
	uint64_t address; // of its JavaThread
	uint64_t stack_low, stack_high;
	uint64_t owner_id; // as monitors name it, from JDK 24 on; 0: not known
	int own_tid, tid;  // as its process sees it; as we do
};

// Zero is empty.
struct java_threads {
	struct java_thread *items; // sorted by tid
	size_t n, capacity;
	int64_t next_ns; // when the list may be read again
	int holder;      // the tid of the last one that was found by its own list of locks
};

// What a thread's structure says of it now.
struct java_thread_state {
	uint64_t pending; // the monitor that it wants to enter; 0: none
	uint64_t waiting; // the monitor on which it waits to be notified; 0: none
	uint64_t object;  // its java.lang.Thread, or the address of the object's (java_layout.h)
};

void java_threads_deinit(struct java_threads *threads);

// Reads the state of the thread with our number `tid`. False if it is none of Java's, or cannot be
// read.
bool java_threads_read(struct java_threads *threads, const struct java_layout *layout,
                       const struct java_memory *memory, int tid, struct java_thread_state *ret);

// Returns our number of the thread with that JavaThread; 0: none.
int java_threads_tid(const struct java_threads *threads, const struct java_layout *layout,
                     const struct java_memory *memory, uint64_t address);

// Returns our number of the thread that owns the monitor; 0: none, or not known.
int java_threads_owner(struct java_threads *threads, const struct java_layout *layout,
                       const struct java_memory *memory, uint64_t monitor);
