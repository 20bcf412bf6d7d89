// SPDX-License-Identifier: MIT
// agent_cost: what the agent and all that it started take of the machine, and whether it may begin
// another window.
//
// CPU time is saved up at the rate that is allowed, for a minute at most, and every window is paid
// from it when it ends; those that are at work count as much as windows did on average.
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
	int64_t last_ns;    // when it was counted last, CLOCK_MONOTONIC
	int64_t own_cpu_ns; // of this process, then
	int64_t uploader_cpu_ns;
	int64_t windows_cpu_ns; // of all that have ended
	uint64_t n_windows;
	int64_t total_cpu_ns; // of everybody
	uint64_t memory;      // at the last look, PSS in bytes; and the most
	uint64_t peak_memory;
	int64_t memory_ns; // when that was
};

void agent_cost_init(struct agent_cost *cost, double cpu_percent, uint64_t max_memory);

// From time to time, and before the next question. `uploader`: its pid; 0: there is none.
void agent_cost_count(struct agent_cost *cost, pid_t uploader);

// A window's processes have ended.
void agent_cost_pay(struct agent_cost *cost, const struct rusage *usage);

// True if another window may begin, where `n_running` are at work.
bool agent_cost_allows(struct agent_cost *cost, size_t n_running);
