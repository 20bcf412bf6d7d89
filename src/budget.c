#include "budget.h"

#include "clock.h"

// What may be borrowed: CPU time for the rules of code that is new, and a few long holds.
static const double CPU_LOAN_NS = 150e6, HELD_LOAN_NS = 20e6;

void budget_init(struct budget *budget, double percent, int64_t now_ns)
{
	*budget = (struct budget){
	    .share = percent / 100,
	    .last_ns = now_ns,
	    .cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID),
	    .cpu_left_ns = CPU_LOAN_NS,
	    .held_left_ns = HELD_LOAN_NS,
	};
}

// Earns the share of the time that passed, up to the loan; pays what was spent.
static double settle(double left_ns, double loan_ns, double earned_ns, double spent_ns)
{
	left_ns += earned_ns - spent_ns;
	return left_ns > loan_ns ? loan_ns : left_ns;
}

bool budget_allows(struct budget *budget, int64_t now_ns, int64_t held_ns)
{
	const int64_t cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	const double earned_ns = (double)(now_ns - budget->last_ns) * budget->share;

	if (budget->share <= 0)
		return true;
	budget->cpu_left_ns =
	    settle(budget->cpu_left_ns, CPU_LOAN_NS, earned_ns, (double)(cpu_ns - budget->cpu_ns));
	budget->held_left_ns = settle(budget->held_left_ns, HELD_LOAN_NS, earned_ns,
	                              (double)(held_ns - budget->held_ns));
	budget->last_ns = now_ns;
	budget->cpu_ns = cpu_ns;
	budget->held_ns = held_ns;
	return budget->cpu_left_ns >= 0 && budget->held_left_ns >= 0;
}
