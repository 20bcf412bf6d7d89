// SPDX-License-Identifier: MIT
// sampler: runs the loop of ticks, from the first to the last.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes.h"

struct error;
struct events;
struct launch;
struct modules;
struct profile;
struct run_stats;
struct target;

struct sampler {
	double frequency_hz;
	int64_t duration_ns;   // 0: until the target ends or a signal says so
	uint32_t seed;         // for the places of ticks within their periods; 0: chosen by chance
	uint32_t max_frames;   // of a stack
	uint32_t huge_frames;  // of one that is far deeper: at most max_frames
	unsigned int runtimes; // kinds (runtimes.h)
	enum runtime_frames runtime_frames;
	double max_overhead_percent; // 0: no limit
	bool stop_all;               // hold all running threads at once
	bool children;               // descendants of the targets too
	bool kernel;                 // kernel frames of sleeping threads
	bool locks;                  // find out who holds the locks that threads wait for
	bool system_tasks;           // show the runtime's own tasks, too
	bool no_creators;            // leave a task's creator out of its stack
	bool counts_at_once;         // `passed` reads the profile after each tick
	bool once;                   // only the first tick, at once
	struct target *targets;      // at least one; borrowed, as all that follow
	size_t n_targets;
	struct launch *launch; // NULL: the target was not started by the profiler
	struct events *events;
	struct modules *modules;
	// Called before the first tick, when the profile's start is known, and after each tick.
	// When it is called after the first tick, a command that was started is still held.
	void (*started)(void *context);
	void (*ticked)(void *context);
	// Called after the first tick for each process that was sampled. NULL: not wanted.
	void (*looked)(void *context, const struct target *target);
	// Called before each tick but the first: what has been counted so far will not change any
	// more.
	void (*passed)(void *context);
	void *context;
};

// Samples the targets, as long as one of them lives, into *profile and *stats, which must be zeroed
// before. They hold what was sampled, whatever ended the run. An error if nothing could be.
struct error *sampler_run(const struct sampler *sampler, struct profile *profile,
                          struct run_stats *stats);
