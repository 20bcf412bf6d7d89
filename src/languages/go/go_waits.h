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
struct task;
struct resident_block;
struct snapshot;

enum { GO_NO_DESCRIPTOR = -1 };

struct go_wait {
	const char *what; // "chan", "mutex", "rwmutex", "cond", "waitgroup", "sema"; NULL: not
	                  // known, or none
	uint64_t address; // its address in the process
	size_t n_more;    // how many more channels a select waits for
	int descriptor;   // GO_NO_DESCRIPTOR: none, or not known
};

enum { GO_WAIT_BYTES = 128, GO_WAIT_KINDS = 8 };

// In which word of the innermost frames the last one's was found, for each kind of wait: it is
// looked for there first. Zero is a good beginning.
struct go_wait_hints {
	uint8_t words[GO_WAIT_KINDS];
};

// Returns the address of GO_WAIT_BYTES which will most likely tell what a goroutine waits for whose
// stack was copied; 0: nothing need be read.
uint64_t go_wait_guess(const struct go_program *program, const struct task *goroutine,
                       const struct snapshot *snapshot, const struct go_wait_hints *hints);

// Finds what it waits for. `guess` is what lies at that address. What it finds is right only if the
// goroutine is still the same afterwards (goroutine_is_as).
void go_wait_find(const struct go_program *program, const struct go_memory *memory,
                  const struct task *goroutine, const struct snapshot *snapshot,
                  const struct resident_block *guess, struct go_wait_hints *hints,
                  struct go_wait *ret);
