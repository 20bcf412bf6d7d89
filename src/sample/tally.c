#include "tally.h"

#include "run.h"
#include "target.h"

// A sample in that state. One that runs waits in nothing.
static uint32_t count_ticks(struct tally *tally, const struct target_thread *thread, uint32_t stack,
                            enum thread_state state, uint64_t n, int64_t now_ns)
{
	const uint32_t wait = state == THREAD_RUNNING ? WAIT_NONE : thread->wait;

	tally->run->samples += n;
	return profile_count(tally->profile, thread->id, stack, state, wait, n, now_ns);
}

void tally_count(struct tally *tally, struct target_thread *thread, uint32_t stack,
                 enum thread_state state, int64_t tick_ns)
{
	if (tally->priming) {
		thread->primed_stack = stack;
		thread->primed_state = state;
		return;
	}
	thread->sample = count_ticks(tally, thread, stack, state, 1, tick_ns);
	thread->sampled = true;
	// The later ticks, each in the state that it was in: a sleeper that was woken to be
	// stopped, and waited for a CPU, goes on as a sleeper all the same.
	uint32_t last = thread->sample;
	for (size_t i = 0; i < thread->n_pending_ticks; i++) {
		const struct pending_ticks *ticks = &thread->pending_ticks[i];
		if (ticks->state == tally->profile->samples[last].state) {
			tally->run->samples += ticks->count;
			profile_count_again(tally->profile, last, ticks->count, ticks->last_ns);
		} else {
			last = count_ticks(tally, thread, stack, ticks->state, ticks->count,
			                   ticks->last_ns);
		}
	}
	thread->n_pending_ticks = 0;
}

void tally_slept(struct tally *tally, struct target_thread *thread, uint64_t n_ticks)
{
	if (!thread->sampled) {
		tally_count(tally, thread, thread->primed_stack, thread->primed_state,
		            tally->now_ns);
		n_ticks--;
	}
	if (n_ticks == 0)
		return;
	profile_count_again(tally->profile, thread->sample, n_ticks, tally->now_ns);
	tally->run->samples += n_ticks;
	tally->run->credits += n_ticks;
}

void tally_again(struct tally *tally, struct target_thread *thread)
{
	tally_slept(tally, thread, 1);
}

void tally_as_before(struct tally *tally, struct target_thread *thread, enum thread_state state)
{
	const uint32_t sample = thread->sample;
	uint32_t stack = thread->primed_stack;

	if (thread->sampled) {
		const struct sample *last = &tally->profile->samples[sample];
		stack = last->stack;
		thread->wait = last->wait;
	}
	const bool sampled = thread->sampled;
	tally_count(tally, thread, stack, state, tally->now_ns);
	thread->sample = sample;
	thread->sampled = sampled;
}

void tally_not_sampled(struct tally *tally, struct target_thread *thread, enum stack_end why,
                       enum thread_state state, int64_t tick_ns)
{
	thread->sleep.asleep = false;
	tally_count(tally, thread, profile_intern_stack(tally->profile, NULL, 0, why, false), state,
	            tick_ns);
}

uint64_t tally_pending(struct tally *tally, struct target_thread *thread, enum thread_state state)
{
	const size_t n = thread->n_pending_ticks;

	if (n == 0 || (thread->pending_ticks[n - 1].state != state && n < MAX_PENDING_TICKS))
		thread->pending_ticks[thread->n_pending_ticks++] =
		    (struct pending_ticks){.state = state};
	struct pending_ticks *last = &thread->pending_ticks[thread->n_pending_ticks - 1];
	last->count++;
	last->last_ns = tally->now_ns;
	return last->count;
}

void tally_ends(struct tally *tally, const struct target *target)
{
	for (size_t i = 0; i < target->n_threads; i++) {
		const struct target_thread *thread = target->threads[i];
		if ((thread->gone || !thread->listed) && !thread->pending)
			profile_end_thread(tally->profile, thread->id);
	}
}
