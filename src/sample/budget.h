// SPDX-License-Identifier: MIT
// budget: how much sampling may cost, as a share of time (--max-overhead).
//
// The CPU time that the profiler spends, and the time during which it holds threads, are each
// compared with what the share allows. While either is overdrawn, the sampler sleeps until the debt
// is paid; one tick stands for that time (schedule_extend), which is never longer than
// SCHEDULE_MAX_NS. A stretch of expensive ticks (those that make unwinding rules for new code) may
// borrow a little. A single long hold, whatever its cause, makes ticks rare for that long at most:
// what it cost beyond that is forgiven, unless the last one forgiven is not yet paid off.
#pragma once

#include <stdint.h>

// Totals that only grow.
struct budget_spent {
	int64_t now_ns;
	int64_t cpu_ns;  // CPU time that the profiler has used
	int64_t held_ns; // for how long threads have been held
};

struct budget {
	double share; // 0: no limit
	struct budget_spent last;
	double cpu_left_ns; // what may be spent
	double held_left_ns;
	double held_forgiven_ns; // held time that was forgiven, less what was earned since
};

// `percent`: the share of time, of one CPU; 0: no limit.
void budget_init(struct budget *budget, double percent, const struct budget_spent *spent);

// Returns when what was spent is paid; spent->now_ns if there is no debt.
int64_t budget_paid_ns(struct budget *budget, const struct budget_spent *spent);
