// budget: how much sampling may cost, as a share of time (--max-overhead).
//
// What is spent, of CPU time by the profiler and of time during which threads were held, is
// compared with what the share allows; a tick is left out while one of them is overdrawn. A
// stretch of expensive ticks (those that make unwinding rules for code that is new) may borrow a
// little.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct budget {
	double share;       // 0: no limit
	int64_t last_ns;    // when the accounts were last settled
	int64_t cpu_ns;     // the profiler's CPU clock then
	int64_t held_ns;    // and how long threads had been held
	double cpu_left_ns; // what may be spent
	double held_left_ns;
};

// `percent`: the share of time, of one CPU; 0: no limit.
void budget_init(struct budget *budget, double percent, int64_t now_ns);

// May a tick be taken at now_ns? `held_ns`: for how long threads have been held until now.
bool budget_allows(struct budget *budget, int64_t now_ns, int64_t held_ns);
