// SPDX-License-Identifier: MIT
// wait_reasons: finds what the sleeping threads of one process wait in: the system call, what its
// descriptor is, and, if asked for, the kernel's own functions.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proc.h"
#include "wait_peers.h"

struct profile;
struct wait;
struct run_stats;
struct target;
struct target_thread;

// The names of the threads that hold what others wait for. Few threads hold much, so
// that a name is kept for a moment rather than read for each that waits.
enum { N_HOLDER_NAMES = 16 };

struct holder_names {
	struct {
		int tid; // 0: none
		int64_t due_ns;
		char name[PROC_NAME_SIZE];
	} items[N_HOLDER_NAMES];
};

// Gives the name of a thread of that process, of which all are, as it was a tenth of a second ago
// at most. Returns false if it cannot be read.
bool holder_names_read(struct holder_names *names, int pid, int tid, char ret[PROC_NAME_SIZE]);

struct wait_reasons {
	struct profile *profile;       // borrowed
	struct run_stats *stats;       // borrowed
	bool kernel;                   // read kernel frames
	bool locks;                    // find out who holds the locks that are waited for
	bool knows_tids, has_our_tids; // no pid namespace lies between the process and us
	uint32_t *unnamed;             // waits in the profile whose socket has no meaning yet
	size_t n_unnamed, unnamed_capacity;
	bool *noted; // for each wait in the profile: it was among `unnamed`
	size_t n_noted, noted_capacity;
	struct wait_peers peers;     // if `locks`
	struct holder_names holders; // if `locks`
	int fds_fd;                  // /proc/PID/fd; -1: not opened
	int64_t next_ns;             // when the tables of sockets may be read again
};

void wait_reasons_init(struct wait_reasons *waits, struct profile *profile, struct run_stats *stats,
                       bool kernel, bool locks);
void wait_reasons_deinit(struct wait_reasons *waits);

// Returns the id in the profile of what the thread waits in, which sleeper_look has just seen
// asleep (SLEEPER_COPIED) in thread->call. Leaves out a descriptor or kernel frames that cannot be
// read while the thread is still there.
uint32_t wait_reasons_read(struct wait_reasons *waits, const struct target *target,
                           const struct target_thread *thread);

// True if a thread that sleeps in futex(2) still waits for the same holder, as far as the words
// around its futex tell: the C library's locks and threads have the holder's tid there. This takes
// a small part of the time that wait_reasons_read takes.
bool wait_reasons_has_holder(struct target *target, const struct target_thread *thread,
                             const struct wait *wait);

// Returns the id of a wait in that system call (any number), of which nothing more is known.
uint32_t wait_reasons_of_call(struct wait_reasons *waits, int64_t number);

// Returns the id of a task's wait, for that reason, until the descriptor is ready.
uint32_t wait_reasons_of_reason(struct wait_reasons *waits, const struct target *target,
                                const char *reason, int descriptor);

// Finds out what the sockets are that were seen since the last time; takes at most a thousandth of
// the time for it. `last`: no other call will come.
void wait_reasons_name_sockets(struct wait_reasons *waits, const struct target *target, bool last);
