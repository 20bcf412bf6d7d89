// SPDX-License-Identifier: MIT
// go_waits: finds what a parked goroutine waits for: a channel, a lock or a file descriptor.
//
// A goroutine that waits for a channel or a semaphore is listed there by a sudog (runtime2.go).
// Struct g points to the sudog of a channel. A semaphore's sudog, and the network poller's
// pollDesc, are known only to the functions that parked the goroutine: their addresses lie in the
// innermost frames, and they are believed if what is there names the goroutine.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct go_memory;
struct go_program;
struct goroutine;
struct snapshot;

enum { GO_NO_DESCRIPTOR = -1 };

struct go_wait {
	const char *what; // "chan", "mutex", "rwmutex", "cond", "waitgroup", "sema"; NULL: not
	                  // known, or none
	uint64_t address; // its address in the process
	size_t n_more;    // how many more channels a select waits for
	int descriptor;   // GO_NO_DESCRIPTOR: none, or not known
};

// Finds it for a goroutine whose stack was copied. What it finds is right only if the goroutine is
// still the same afterwards (goroutine_is_as).
void go_wait_find(const struct go_program *program, const struct go_memory *memory,
                  const struct goroutine *goroutine, const char *reason,
                  const struct snapshot *snapshot, struct go_wait *ret);
