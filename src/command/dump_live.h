// SPDX-License-Identifier: MIT
// dump_live: takes the dump of a running process: one tick of the sampler, and what /proc tells.
#pragma once

#include "dump.h"
#include "dump_locks.h"
#include "run_stats.h"

struct debug_sources;
struct error;
struct events;
struct options;

struct dump_live {
	struct dump dump;
	struct profile profile;
	struct modules modules;
	struct symbols symbols;
	struct run_stats stats;
	struct dump_locks locks;
};

// Takes a dump of options->pid. Threads that sleep are not stopped.
struct error *dump_live_take(const struct options *options, struct events *events,
                             const struct debug_sources *sources, struct dump_live *ret);
void dump_live_deinit(struct dump_live *live);
