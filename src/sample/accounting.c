// SPDX-License-Identifier: MIT
#include "accounting.h"

#include "run_stats.h"

// Counts a sample in that state. A thread that runs, or is ready to, has no wait.
static uint32_t count_ticks(struct accounting *accounting, struct account *account, uint32_t stack,
                            enum thread_state state, uint64_t n, int64_t now_ns)
{
	const bool is_ready = state == THREAD_RUNNING || state == THREAD_RUNNABLE;
	const uint32_t wait = is_ready ? WAIT_NONE : account->wait;
	const int64_t last_ns = accounting->profile->threads[account->thread].last_ns;

	account->until_ns = now_ns;
	// A task that was parked in between is counted up to a later tick already.
	if (now_ns < last_ns)
		now_ns = last_ns;
	accounting->stats->samples += n;
	return profile_count(accounting->profile, account->thread, stack, state, wait, n, now_ns);
}

static void count_again(struct accounting *accounting, struct account *account, uint32_t sample,
                        uint64_t n, int64_t now_ns)
{
	const int64_t last_ns = accounting->profile->threads[account->thread].last_ns;

	account->until_ns = now_ns;
	accounting->stats->samples += n;
	profile_count_again(accounting->profile, sample, n, now_ns < last_ns ? last_ns : now_ns);
}

void accounting_count_alone(struct accounting *accounting, struct account *account, uint32_t stack,
                            enum thread_state state, int64_t tick_ns)
{
	if (accounting->priming) {
		account->primed_stack = stack;
		account->primed_state = state;
		return;
	}
	account->sample = count_ticks(accounting, account, stack, state, 1, tick_ns);
	account->sampled = true;
}

// Returns how many of the ticks at which a pending thread was ready it had no CPU: it has one
// stack for all of them, and the kernel's own count tells how they divide.
static uint64_t count_waiting(const struct account *account, const struct pending_ticks *ticks)
{
	const uint64_t cpu_ns = account->pending_cpu_ns, delay_ns = account->pending_delay_ns;

	if (ticks->state != THREAD_RUNNING || cpu_ns + delay_ns == 0)
		return 0;
	return (uint64_t)((double)ticks->count * (double)delay_ns / (double)(cpu_ns + delay_ns) +
	                  0.5);
}

static void count_stretch(struct accounting *accounting, struct account *account, uint32_t stack,
                          const struct pending_ticks *ticks, uint32_t *last)
{
	const struct sample *sample = &accounting->profile->samples[*last];

	if (ticks->count == 0)
		return;
	if (ticks->state == sample->state && stack == sample->stack)
		count_again(accounting, account, *last, ticks->count, ticks->last_ns);
	else
		*last = count_ticks(accounting, account, stack, ticks->state, ticks->count,
		                    ticks->last_ns);
}

// Counts each in the state that it was in: a sleeper that was woken only to be stopped, and waited
// for a CPU, still goes on as a sleeper.
void accounting_count_pending(struct accounting *accounting, struct account *account,
                              uint32_t stack)
{
	uint32_t last = account->sample;

	for (size_t i = 0; i < account->n_pending_ticks; i++) {
		struct pending_ticks *ticks = &account->pending_ticks[i];
		const int64_t begin_ns = account->until_ns;
		struct pending_ticks waiting = {THREAD_RUNNABLE, count_waiting(account, ticks), 0};
		waiting.last_ns =
		    begin_ns + (int64_t)((double)(ticks->last_ns - begin_ns) *
		                         (double)waiting.count / (double)ticks->count);
		ticks->count -= waiting.count;
		if (ticks->count == 0)
			waiting.last_ns = ticks->last_ns;
		count_stretch(accounting, account, stack, &waiting, &last);
		count_stretch(accounting, account, stack, ticks, &last);
	}
	account->n_pending_ticks = 0;
	account->pending_cpu_ns = account->pending_delay_ns = 0;
}

void accounting_count(struct accounting *accounting, struct account *account, uint32_t stack,
                      enum thread_state state, int64_t tick_ns)
{
	accounting_count_alone(accounting, account, stack, state, tick_ns);
	if (!accounting->priming)
		accounting_count_pending(accounting, account, stack);
}

void accounting_slept(struct accounting *accounting, struct account *account, uint64_t n_ticks)
{
	if (!account->sampled) {
		accounting_count(accounting, account, account->primed_stack, account->primed_state,
		                 accounting->now_ns);
		n_ticks--;
	}
	if (n_ticks == 0)
		return;
	count_again(accounting, account, account->sample, n_ticks, accounting->now_ns);
	accounting->stats->credits += n_ticks;
}

void accounting_again(struct accounting *accounting, struct account *account)
{
	accounting_slept(accounting, account, 1);
}

void accounting_repeat_in_state(struct accounting *accounting, struct account *account,
                                enum thread_state state)
{
	const uint32_t sample = account->sample;
	uint32_t stack = account->primed_stack;

	if (account->sampled) {
		const struct sample *last = &accounting->profile->samples[sample];
		stack = last->stack;
		account->wait = last->wait;
	}
	const bool sampled = account->sampled;
	accounting_count(accounting, account, stack, state, accounting->now_ns);
	account->sample = sample;
	account->sampled = sampled;
}

void accounting_not_sampled(struct accounting *accounting, struct account *account,
                            enum stack_end why, enum thread_state state, int64_t tick_ns)
{
	accounting_count(accounting, account,
	                 profile_intern_stack(accounting->profile, NULL, 0, why, false), state,
	                 tick_ns);
}

// Returns the stretch that one more tick in that state belongs to; the number of stretches: a new
// one.
static size_t find_stretch(const struct account *account, enum thread_state state)
{
	const size_t n = account->n_pending_ticks;
	size_t i = n;

	while (i > 0 && account->pending_ticks[i - 1].state != state)
		i--;
	return i == n || (i > 0 && n >= MAX_PENDING_STRETCHES) ? i - 1 : n;
}

uint64_t accounting_pending(struct accounting *accounting, struct account *account,
                            enum thread_state state)
{
	struct pending_ticks *ticks = account->pending_ticks;
	const size_t n = account->n_pending_ticks;
	const size_t found = n > 0 ? find_stretch(account, state) : 0;
	const int64_t tick_ns = n > 0 ? accounting->now_ns - ticks[n - 1].last_ns : 0;

	if (found == n) {
		ticks[account->n_pending_ticks++] =
		    (struct pending_ticks){state, 1, accounting->now_ns};
		return 1;
	}
	for (size_t i = found; i < n; i++)
		ticks[i].last_ns += tick_ns;
	return ++ticks[found].count;
}
