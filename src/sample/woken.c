// SPDX-License-Identifier: MIT
#include "woken.h"

#include <stddef.h>

#include "machine_load.h"
#include "sleeper.h"
#include "target.h"

enum { MAX_COUNTS = 3 };

bool woken_is_worth_looks(const struct machine_load *load, const struct target *target,
                          long n_others)
{
	return machine_load_is_crowded(load, n_others) && target->n_threads <= WOKEN_MAX_LOOKS;
}

bool woken_is_ready(const struct target *target, struct target_thread *thread)
{
	enum thread_state state;

	return !thread->sleep.stop_woke_it && !sleeper_is_blocked(target, thread) &&
	       sleeper_state(target, thread, &state) && state == THREAD_RUNNING;
}

static long count_running(const struct target *target)
{
	long n = 0;

	for (size_t i = 0; i < target->n_threads; i++)
		n += !target->threads[i]->look_later &&
		     !sleeper_is_blocked(target, target->threads[i]);
	return n;
}

bool woken_may_be_ready(const struct machine_load *load, const struct target *target, long n_others,
                        long n_running)
{
	// There may be any number of other processes' threads.
	for (int i = 0; i < MAX_COUNTS && n_others <= n_running + 1; i++) {
		if (n_others == n_running && machine_load_others(load) == n_others)
			return false;
		n_others = machine_load_others(load);
		n_running = count_running(target);
	}
	return true;
}
