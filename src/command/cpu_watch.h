// SPDX-License-Identifier: MIT
// cpu_watch: reads, while a process is sampled, for how long its threads had CPUs and waited for
// them, and what its control groups' limits have to do with that.
#pragma once

#include <stdbool.h>

#include "cpu_waits.h"
#include "cpu_limit.h"

struct profile;
struct run_stats;

struct cpu_watch {
	struct cpu_limit limit;
	struct cpu_log log; // a reading for each second, and the last one
};

// Begins before the first tick. Zeroed, it may be deinitialized at any time.
void cpu_watch_begin(struct cpu_watch *watch, int pid);

// Reads if the last reading is a second old or `ended`. Call it after each tick, and at the end.
void cpu_watch_look(struct cpu_watch *watch, const struct profile *profile,
                    const struct run_stats *stats, bool ended);

void cpu_watch_deinit(struct cpu_watch *watch);

// Returns the figures of the whole run, and the line about it (cpu_waits_text).
struct cpu_waits cpu_watch_whole(const struct cpu_watch *watch);
char *cpu_watch_text(const struct cpu_watch *watch, const struct profile *profile,
                     bool *ret_by_others);
