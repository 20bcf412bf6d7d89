// SPDX-License-Identifier: MIT
// agent_cost: what the agent and all that it started take of the machine, and whether it may begin
// another window.
//
// CPU time is saved up at the allowed rate, a minute's worth at most. A window is paid for when it
// ends; until then it counts as much as windows took on average.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct agent_cost {
	double cpu_percent; // allowed; 0: no limit
	uint64_t max_memory;
	int64_t credit_ns;  // CPU time saved up
	int64_t last_ns;    // when CPU time was last counted, CLOCK_MONOTONIC
	int64_t own_cpu_ns; // this process's CPU time then
	int64_t uploader_cpu_ns;
	int64_t windows_cpu_ns; // of all windows that have ended
	uint64_t n_windows;
	int64_t total_cpu_ns; // of the agent and all that it started
	uint64_t memory;      // PSS in bytes, at the last look
	uint64_t peak_memory; // the largest that was seen
	int64_t look_ns;      // when the next look is due, CLOCK_MONOTONIC
};

void agent_cost_init(struct agent_cost *cost, double cpu_percent, uint64_t max_memory);

// Counts what was used since the last call. Call it from time to time, and before the functions
// below. `uploader`: its pid; 0: there is none.
void agent_cost_count(struct agent_cost *cost, pid_t uploader);

// Pays for a window whose processes have ended.
void agent_cost_pay(struct agent_cost *cost, const struct rusage *usage);

// Looks at the memory of all, if that is due: every second, or more rarely where looking takes
// long. True if this look has found more than there may be.
bool agent_cost_looks_over_limit(struct agent_cost *cost);

// True if another window may begin beside the `n_running` that are at work.
bool agent_cost_allows(struct agent_cost *cost, size_t n_running);

// The memory of processes that the agent has started.

// Returns what the process and its descendants have of the machine's memory, in bytes: the sum of
// PSS, in which what several share counts once. What is not told counts as 0.
uint64_t agent_memory_of(int pid);

// Makes this process, which is to be a sampler, fail when it takes more than all samplers together
// may, before the kernel ends somebody in its place. What it has already is not counted.
void agent_memory_limit(uint64_t bytes);
