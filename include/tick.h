// tick: one sample of every thread of the target.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address_space.h"
#include "profile.h"
#include "snapshot.h"
#include "unwind.h"

struct events;
struct run;
struct target;
struct tick_stop;

struct ticker {
	struct target *target; // these four are borrowed
	struct profile *profile;
	struct events *events;
	struct run *run;
	struct address_space space;
	struct unwinder unwinder;
	struct snapshot_buffer buffer;
	struct tick_stop *stops; // threads that were asked to stop
	size_t n_stops, stops_capacity;
	int64_t now_ns;          // of this tick
	int64_t cpu_clock_ns;    // the target's CPU clock at the last tick
	int64_t release_ns;      // when the last held thread was let go
	int64_t quiet_ns;        // until when nobody that is asked had stopped, for certain
	int64_t settled_held_ns; // of run->held_ns, what is in run->tick_hold
	int64_t own_delay_ns;    // the sampler's own wait for CPUs, as last read
	int own_schedstat_fd;    // of the sampler itself; -1: none
	bool all_asleep;         // at the last tick
	bool held_at_exec;       // the target is a command that the profiler holds
	bool stop_all;
};

struct modules;
struct rule_cache;

// All borrowed.
struct ticker_setup {
	struct target *target;
	struct profile *profile;
	struct modules *modules;
	struct rule_cache *rules;
	struct events *events;
	struct run *run;
	uint32_t max_frames;
	bool stop_all; // hold all running threads at once: one consistent picture
};

// False: no address space for the snapshots.
bool ticker_init(struct ticker *ticker, const struct ticker_setup *setup);
void ticker_deinit(struct ticker *ticker);

// Samples every thread once, at now_ns. False: no thread is left.
bool ticker_tick(struct ticker *ticker, int64_t now_ns);

// Waits until the deadline or an event (events.h), and takes the samples of threads that were
// asked to stop in a tick and have stopped only now.
void ticker_wait(struct ticker *ticker, int64_t deadline_ns);

// The last sample is taken: gives the threads that do not stop a moment more, counts what is left
// of them as not sampled, and notes the kernel's figures.
void ticker_finish(struct ticker *ticker);
