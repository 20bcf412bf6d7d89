// SPDX-License-Identifier: MIT
#include "budget.h"

#include "schedule.h"

// How much may be borrowed: CPU time, for code and processes that are new (0.2 s for ten small
// ones), and held time, for a few long holds.
static const double CPU_LOAN_NS = 300e6, HELD_LOAN_NS = 20e6;

// Far longer than any wait that is planned.
static const double MAX_WAIT_NS = 1e15;

void budget_init(struct budget *budget, double percent, const struct budget_spent *spent)
{
	*budget = (struct budget){
	    .share = percent / 100,
	    .last = *spent,
	    .cpu_left_ns = CPU_LOAN_NS,
	    .held_left_ns = HELD_LOAN_NS,
	};
}

// Adds the share of the time that passed, up to the loan, and subtracts what was spent.
static double settle(double left_ns, double loan_ns, double earned_ns, int64_t spent_ns)
{
	left_ns += earned_ns - (double)spent_ns;
	return left_ns > loan_ns ? loan_ns : left_ns;
}

static void forgive(struct budget *budget, double earned_ns)
{
	const double least_ns = -budget->share * SCHEDULE_MAX_NS;

	budget->held_forgiven_ns -= earned_ns;
	if (budget->held_left_ns >= least_ns || budget->held_forgiven_ns > 0)
		return;
	budget->held_forgiven_ns = least_ns - budget->held_left_ns;
	budget->held_left_ns = least_ns;
}

int64_t budget_paid_ns(struct budget *budget, const struct budget_spent *spent)
{
	const struct budget_spent last = budget->last;
	const double earned_ns = (double)(spent->now_ns - last.now_ns) * budget->share;

	if (budget->share <= 0)
		return spent->now_ns;
	budget->cpu_left_ns =
	    settle(budget->cpu_left_ns, CPU_LOAN_NS, earned_ns, spent->cpu_ns - last.cpu_ns);
	budget->held_left_ns =
	    settle(budget->held_left_ns, HELD_LOAN_NS, earned_ns, spent->held_ns - last.held_ns);
	forgive(budget, earned_ns);
	budget->last = *spent;
	const double left_ns =
	    budget->cpu_left_ns < budget->held_left_ns ? budget->cpu_left_ns : budget->held_left_ns;
	if (left_ns >= 0)
		return spent->now_ns;
	const double wait_ns = -left_ns / budget->share;
	return spent->now_ns + (int64_t)(wait_ns < MAX_WAIT_NS ? wait_ns : MAX_WAIT_NS);
}
