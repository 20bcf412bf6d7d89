// SPDX-License-Identifier: MIT
// tick: one sample of every thread of one process.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address_space.h"
#include "goroutine_samples.h"
#include "profile.h"
#include "idle_check.h"
#include "runtimes.h"
#include "stops.h"
#include "accounting.h"
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
	uint32_t max_frames;
	unsigned int runtimes; // kinds (runtimes.h)
	enum runtime_frames runtime_frames;
	bool stop_all;          // hold all running threads at once: one consistent picture
	bool kernel;            // kernel frames of sleeping threads
	bool locks;             // and who holds the locks that they wait for
	bool system_goroutines; // are shown, too
	bool no_creators;       // goroutines' stacks end with what they began with
	bool counts_at_once;    // the profile is read after each tick
	// Now and then in long work: those that have stopped are to be served (ticker_attend).
	// NULL: none has to be.
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
	bool runtimes_known; // all that they will of the last stack
	struct go_layout go; // the unwinder's, as it last was in peace: copies go by it
	struct stops stops;
	struct wait_reasons waits;
	struct accounting accounting;
	struct idle_check idle_check;
	struct goroutine_samples goroutines;
	int64_t forced_ns; // the tick in which the maps were read out of turn
	long n_others;     // threads of the machine that want a CPU (machine_load.h), at this tick
	long n_running;    // those of this process's threads that do, as far as looked at
	bool started;      // primed, or a tick was taken
	bool all_asleep;   // at the last tick
	uint64_t n_idle_ticks; // up to the last one, that are not yet counted
	bool counting;         // the stops that are over
	bool held_at_exec;     // the target is a command that the profiler holds
};

void ticker_init(struct ticker *ticker, struct target *target, const struct ticker_setup *setup);
void ticker_deinit(struct ticker *ticker);

// Looks at every thread before the first tick, which need then not copy all that sleep: 5,000 take
// longer than a period. Nothing is counted, and no thread is stopped.
void ticker_prime(struct ticker *ticker, int64_t now_ns);

// Samples every thread once, for that stretch of time; n_others is machine_load_others just before.
// False: no thread is left.
bool ticker_tick(struct ticker *ticker, const struct stretch *stretch, long n_others);

// Takes the samples of threads that were asked to stop in a tick and have stopped only now. To be
// called whenever a signal came between ticks.
void ticker_collect(struct ticker *ticker);

// The same in the midst of a tick, of whichever process. Not with stop_all.
void ticker_attend(struct ticker *ticker);

// The first half of that, in a signal handler: copies them, and lets them go.
void ticker_serve(struct ticker *ticker);

// The last sample is taken: gives the threads that do not stop until until_ns, and counts what is
// left of them as not sampled.
void ticker_finish(struct ticker *ticker, int64_t until_ns);
