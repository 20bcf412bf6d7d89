// SPDX-License-Identifier: MIT
#include "sleep.h"

#include "tracee_stop.h"

enum { RUNS_OF_A_STOP = 2 };

// A thread that a stop woke may not be asleep again yet; and what it waited for may have come at
// that very moment, so that it runs on. So if it was scheduled as often as the stop takes, it must
// be blocked to count as asleep. A thread that has not run at all since its stop waits for a CPU,
// or sleeps as before.
enum sleep_verdict sleep_judge(const struct sleep *sleep, uint64_t runs, enum sleep_blocked blocked)
{
	const bool may_sleep_on = sleep->asleep && runs <= sleep->runs;
	const bool is_back = sleep->stop_woke_it && runs == sleep->runs;

	if (may_sleep_on && !is_back)
		return SLEEP_ON;
	const bool has_not_run = sleep->stop_runs != 0 && runs == sleep->stop_runs;
	if (!may_sleep_on && !has_not_run)
		return SLEEP_UNKNOWN;
	if (blocked == SLEEP_NOT_ASKED)
		return SLEEP_ASK;
	if (blocked == SLEEP_BLOCKED)
		return may_sleep_on ? SLEEP_ON : SLEEP_UNKNOWN;
	return has_not_run ? SLEEP_READY : SLEEP_UNKNOWN;
}

void sleep_note_seen(struct sleep *sleep, uint64_t runs)
{
	sleep->runs = runs;
	sleep->stop_woke_it = false;
}

// The thread sleeps on if it stays in its system call, or stopped by job control.
void sleep_note_release(struct sleep *sleep, bool was_asleep, const struct tracee_stop *stop)
{
	sleep->asleep = was_asleep && (stop->group_stop || (stop->interrupted && stop->resumes));
	sleep->runs += RUNS_OF_A_STOP;
	sleep->stop_woke_it = true;
}
