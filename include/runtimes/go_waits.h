// SPDX-License-Identifier: MIT
// go_waits: what a parked goroutine waits for: a channel, a lock, a file descriptor.
//
// The runtime puts one who waits into a list of the thing itself: by a sudog (runtime2.go), which
// struct g leads to where it is a channel's. A semaphore's, and the network poller's pollDesc, are
// known to the functions alone that have parked the goroutine: their address lies in the innermost
// frames, and what is there names the goroutine.
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
	uint64_t address; // of that, in the process
	size_t n_more;    // channels, of a select
	int descriptor;   // GO_NO_DESCRIPTOR: none, or not known
};

// Right if the goroutine, whose stack was copied, is as it was afterwards.
void go_wait_find(const struct go_program *program, const struct go_memory *memory,
                  const struct goroutine *goroutine, const char *reason,
                  const struct snapshot *snapshot, struct go_wait *ret);
