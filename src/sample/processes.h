// SPDX-License-Identifier: MIT
// processes: all processes that are sampled: the targets and, with --children, their descendants.
//
// A descendant is found in the list of children that the kernel keeps for each thread
// (/proc/PID/task/TID/children); it is read when the thread has run since the last tick.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"
#include "held_time.h"
#include "machine_load.h"
#include "rule_cache.h"
#include "snapshot.h"
#include "thread_sums.h"
#include "tick.h"

struct process;
struct profile;
struct run_stats;
struct sampler;
struct stretch;
struct target;

struct refused_child {
	int pid;
	uint64_t start_time; // pids are used again, but not with the same start time
};

struct processes {
	struct process **items; // the targets first
	size_t count, capacity;
	struct ticker_setup setup;
	struct rule_cache rules;
	struct snapshot_buffer buffer;
	struct held_time hold;
	struct machine_load load;
	struct thread_sums sums;
	struct run_stats *stats;       // borrowed
	bool children;                 // sample descendants too
	struct refused_child *refused; // children that cannot be sampled
	size_t n_refused, refused_capacity;
};

// Begins with the sampler's targets, which target_open has opened before. What the sampler borrows
// is borrowed here, too. False if there is no address space for the copies of stacks.
bool processes_init(struct processes *processes, const struct sampler *sampler,
                    struct profile *profile, struct run_stats *stats);
void processes_deinit(struct processes *processes);

// Notes that the first target is a command that the profiler holds at its first instruction.
void processes_set_held(struct processes *processes, bool held);

// Looks at the targets' threads before the first tick (tick.h).
void processes_prime(struct processes *processes, int64_t now_ns);

// Samples all threads of all processes, in a tick that stands for that stretch of time. False if
// no target has a thread left.
bool processes_tick(struct processes *processes, const struct stretch *stretch);

// Calls visit(context, target) for each process that is sampled.
void processes_visit(const struct processes *processes,
                     void (*visit)(void *context, const struct target *target), void *context);

// Call these between ticks, around what may take long, as writing to a pipe: who stops meanwhile is
// let go at once, as in held_time.h.
bool processes_begin_work(struct processes *processes);
void processes_end_work(struct processes *processes, bool begun);

// Waits until the deadline or an event (events.h), and takes the samples of threads that stop late.
void processes_wait(struct processes *processes, int64_t deadline_ns);

// Call it when the last sample is taken. Lets go of all threads; those that the kernel does not let
// stop are let go as soon as they do.
void processes_finish(struct processes *processes);
