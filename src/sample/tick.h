// SPDX-License-Identifier: MIT
// tick: takes one sample of every thread of one process.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "accounting.h"
#include "address_space.h"
#include "idle_check.h"
#include "profile.h"
#include "runtimes.h"
#include "stops.h"
#include "tasks.h"
#include "unwind.h"
#include "wait_reasons.h"

struct held_time;
struct machine_load;
struct modules;
struct rule_cache;
struct run_stats;
struct snapshot_buffer;
struct stretch;
struct target;
struct thread_sums;

// What the tickers of all processes share; all borrowed.
struct ticker_setup {
	struct profile *profile;
	struct modules *modules;
	struct rule_cache *rules;
	struct held_time *hold;
	struct machine_load *load;
	struct thread_sums *sums;
	struct snapshot_buffer *buffer;
	uint32_t max_frames, huge_frames; // unwind.h
	unsigned int runtimes;            // kinds (runtimes.h)
	enum runtime_frames runtime_frames;
	bool stop_all;       // hold all running threads at once: one consistent picture
	bool kernel;         // kernel frames of sleeping threads
	bool locks;          // who holds the locks that threads wait for
	bool system_tasks;   // show the runtime's own tasks, too
	bool no_creators;    // leave a task's creator out of its stack
	bool counts_at_once; // the profile is read after each tick
	// Called now and then in long work, to serve those that have stopped (ticker_attend). NULL:
	// nothing to call.
	void (*attend)(void *);
	void *attend_context;
};

struct ticker {
	const struct ticker_setup *setup; // borrowed, as the next four
	struct target *target;
	struct profile *profile;
	struct run_stats *stats;
	struct snapshot_buffer *buffer;
	struct address_space space;
	struct unwinder unwinder;
	struct runtimes runtimes;
	bool runtimes_known; // they know all that they will know of the last stack
	struct stops stops;
	struct wait_reasons waits;
	struct accounting accounting;
	struct idle_check idle_check;
	struct tasks tasks;
	int64_t forced_ns; // the last tick in which the maps were read early
	long n_others;     // threads of the machine that wanted a CPU at this tick (machine_load.h)
	long last_pid;     // that the machine has given out last; -1: not known
	long n_running;    // how many of this process's threads do, of those looked at so far
	int64_t ended_ns;  // when the last tick was over
	int64_t begin_cpu_ns, cpu_ns; // the sampler's CPU time when it began, and in it
	bool started;                 // primed, or a tick was taken
	bool all_asleep;              // at the last tick, all threads were
	uint64_t n_idle_ticks;        // idle ticks, up to the last one, that are not counted yet
	bool counting;                // it is counting the stops that are over
	bool looks_again;             // it is in a tick, and may stop a thread again in it
	bool held_at_exec;            // the target is a command that the profiler holds
};

void ticker_init(struct ticker *ticker, struct target *target, const struct ticker_setup *setup);
void ticker_deinit(struct ticker *ticker);

// Only unwinds the copy, for a task's stack.
void tick_walk(struct ticker *ticker, const struct snapshot *snapshot, struct unwound *ret);

// Reads what the runtimes know of a thread that waits, for a stack of it that was read from memory.
// Call tick_merge only if the thread has waited all the while.
void tick_read_runtimes(struct ticker *ticker, int tid, struct snapshot *snapshot);

// Puts the runtimes' frames into that stack.
void tick_merge(struct ticker *ticker, int tid, const struct snapshot *snapshot,
                struct unwound *ret);

// Looks at every thread before the first tick, so that this tick need not copy all that sleep:
// 5,000 take longer than a period. Nothing is counted, and no thread is stopped.
void ticker_prime(struct ticker *ticker, int64_t now_ns);

// Samples every thread once, for that stretch of time. False if no thread is left.
bool ticker_tick(struct ticker *ticker, const struct stretch *stretch);

// Takes the samples of threads that were asked to stop in a tick and have stopped only now. Call it
// whenever a signal came between ticks.
void ticker_collect(struct ticker *ticker);

// Does the same in the middle of a tick, of any process. Not to be used with stop_all.
void ticker_attend(struct ticker *ticker);

// Does the first half of that, in a signal handler: copies the threads, and lets them go.
void ticker_serve(struct ticker *ticker);

// Call it when the last sample is taken, and the threads that have not stopped yet have had some
// time: these count as not sampled.
void ticker_finish(struct ticker *ticker);
