// SPDX-License-Identifier: MIT
#include "tick_look.h"

#include "decision.h"
#include "first_look.h"
#include "labels.h"
#include "run_stats.h"
#include "sleeper.h"
#include "spared_calls.h"
#include "target.h"
#include "thread_info.h"
#include "tick.h"
#include "tick_unwind.h"
#include "tracee.h"
#include "woken.h"

enum { ASK_AGAIN_TICKS = 8 };

// Notes one more tick for a thread that was asked to stop and has not: it waits for a CPU, or
// sleeps uninterruptibly in a system call that it had begun. Either way its stack is unchanged.
static void note_pending(struct ticker *ticker, struct target_thread *thread)
{
	enum thread_state state;

	if (!sleeper_is_blocked(ticker->target, thread) ||
	    !sleeper_state(ticker->target, thread, &state))
		state =
		    THREAD_RUNNING; // or runnable (accounting_count_pending); or it is about to end
	else if (state == THREAD_STOPPED)
		state = thread->stop.asked_state; // it has stopped for us, just now
	ticker->n_running += state == THREAD_RUNNING;
	// The kernel can drop an interrupt that comes while the thread executes another program; a
	// second interrupt does nothing more than the first.
	if (accounting_pending(&ticker->accounting, &thread->account, state) % ASK_AGAIN_TICKS == 0)
		tracee_interrupt(thread->tid);
}

void tick_count_exit(struct ticker *ticker, struct target_thread *thread)
{
	const int64_t exits_ns = thread->stop.exits_ns;

	if (exits_ns <= 0 || exits_ns >= ticker->accounting.now_ns)
		return;
	thread->stop.exits_ns = -1;
	accounting_not_sampled(&ticker->accounting, &thread->account, STACK_NOT_SAMPLED,
	                       THREAD_RUNNING, exits_ns);
}

// Counts a thread of a program for another processor mode. That program's exec shows in what is
// read of the process at each tick (address_space_update).
static void count_foreign(struct ticker *ticker, struct target_thread *thread,
                          enum thread_state state, bool asleep)
{
	thread->sleep.asleep = asleep;
	thread->stop.asked_ns =
	    ticker->accounting.now_ns; // with --stop-all, there is a look to come
	tasks_unbind(ticker, thread);
	profile_label_thread(ticker->profile, thread->account.thread, LABELS_NONE);
	accounting_not_sampled(&ticker->accounting, &thread->account, STACK_FOREIGN, state,
	                       ticker->accounting.now_ns);
}

void tick_plan_stop(struct ticker *ticker, struct target_thread *thread, enum thread_state state,
                    bool asleep)
{
	if (ticker->accounting.priming)
		return;
	if (tracee_is_in_rest(thread->tid)) {
		accounting_repeat_in_state(&ticker->accounting, &thread->account, state);
		thread->sleep.asleep = asleep;
		return;
	}
	if (ticker->space.is_foreign) {
		count_foreign(ticker, thread, state, asleep);
		return;
	}
	first_look_drop(thread);
	thread->account.asked_tick = ticker->tasks.tick;
	stops_plan(&ticker->stops, thread, state, asleep, ticker->accounting.now_ns);
}

static struct copy_seen copy_seen(const struct ticker *ticker, struct target_thread *thread,
                                  const struct snapshot *snapshot, enum stack_end end)
{
	const struct snapshot_hint *hint = &thread->hint;

	return (struct copy_seen){
	    .end = end,
	    .lack = end == STACK_SWITCHED ? languages_lack(thread->tid, &thread->hint, snapshot)
	                                  : LANGUAGE_LACKS_NOTHING,
	    .is_elsewhere = snapshot_hint_knows_more(hint, snapshot),
	    .held_at_exec = ticker->held_at_exec,
	    .is_traced = ticker->target->tracer_pid != 0,
	};
}

// Unwinds the copy of a sleeping thread at once, since nobody is held.
static void take_sleeper(struct ticker *ticker, struct target_thread *thread,
                         struct snapshot *snapshot, const struct snapshot_mark *mark,
                         enum thread_state state)
{
	enum decision decision = DECISION_COPY;
	struct unwound unwound;
	struct copy_seen seen;

	ticker->stats->copies++;
	thread->account.wait = wait_reasons_read(&ticker->waits, ticker->target, thread);
	for (unsigned int n_again = 0; decision == DECISION_COPY; n_again++) {
		if (n_again > 0)
			snapshot_buffer_take_back(ticker->buffer, mark);
		if (n_again > 0 && !sleeper_copy_again(ticker->target, thread, &ticker->space.maps,
		                                       ticker->buffer, snapshot)) {
			tick_plan_stop(ticker, thread, THREAD_RUNNING, false);
			return;
		}
		tick_unwind(ticker, thread, snapshot, &unwound);
		seen = copy_seen(ticker, thread, snapshot, unwound.end);
		seen.n_again = n_again;
		decision = decision_after_copy(&seen);
	}
	if (ticker->held_at_exec)
		state = THREAD_RUNNING; // it is about to run, and only the profiler holds it
	if (decision == DECISION_ASK) {
		const bool bears = sleeper_bears_stop(ticker->target, thread);
		seen.bears = bears ? BEARS_STOP : BEARS_NO_STOP;
		decision = decision_after_copy(&seen);
	}
	if (decision == DECISION_STOP) {
		tick_plan_stop(ticker, thread, state, state != THREAD_RUNNING);
		// One that waits for its memory for microseconds is as good as running.
		if (thread->call.nr != -1)
			first_look_keep(thread, snapshot, &unwound);
		return;
	}
	tasks_bind(ticker, thread, NULL);
	tasks_label(ticker, thread, unwound.labels);
	accounting_count(&ticker->accounting, &thread->account, tasks_stack(ticker, &unwound),
	                 state, ticker->accounting.now_ns);
	tasks_pay(ticker, &thread->account);
	// Its later ticks may count as this one, unless it ran when it was found first, or its
	// stack may be better understood with newer maps, or when the runtimes have learnt more.
	thread->sleep.asleep =
	    state != THREAD_RUNNING && !ticker->space.stale && ticker->runtimes_known;
}

bool tick_looks_for_woken(const struct ticker *ticker)
{
	return woken_is_worth_looks(ticker->setup->load, ticker->target, ticker->n_others);
}

// A thread that is ready to run goes on with the sleeper's sample all the same.
void tick_keep_sleeper(struct ticker *ticker, struct target_thread *thread)
{
	if (!tick_looks_for_woken(ticker) || !woken_is_ready(ticker->target, thread)) {
		accounting_again(&ticker->accounting, &thread->account);
		return;
	}
	ticker->n_running++;
	accounting_repeat_in_state(&ticker->accounting, &thread->account, THREAD_RUNNABLE);
}

void tick_note_unseen(struct target_thread *thread)
{
	thread->sleep.asleep = false;
	thread->account.wait = WAIT_NONE;
}

void tick_note_ran(struct ticker *ticker, struct target_thread *thread)
{
	thread->ran = true;
	// A thread that sleeps when it is first seen is taken to have slept for long.
	thread->ran_ns = ticker->accounting.priming ? 0 : ticker->accounting.now_ns;
	thread_info_refresh_name(ticker->profile, ticker->target, thread,
	                         ticker->accounting.now_ns);
}

// Decides about what only a stop can show, if only the kernel's function tells that a call bears
// none.
static enum decision decide_hidden(struct ticker *ticker, struct target_thread *thread)
{
	const bool gives = spared_calls_gives(ticker->target->pid, thread->tid);

	ticker->stats->blind = true;
	return decision_after_look(SLEEPER_HIDDEN, gives ? BEARS_NO_STOP : BEARS_STOP);
}

// Does what is decided where the thread's stack is known, or not wanted. False if it is to be
// taken.
static bool go_on_without_stack(struct ticker *ticker, struct target_thread *thread,
                                enum decision decision)
{
	switch (decision) {
	case DECISION_NOTHING:
		return true;
	case DECISION_WAIT:
		note_pending(ticker, thread);
		return true;
	case DECISION_KEEP:
		tick_keep_sleeper(ticker, thread);
		return true;
	case DECISION_KEEP_RAN:
		ticker->n_running++;
		accounting_repeat_in_state(&ticker->accounting, &thread->account, THREAD_RUNNABLE);
		ticker->stats->no_cpu_samples++;
		return true;
	case DECISION_FORGET:
		thread->gone = true;
		return true;
	default:
		return false;
	}
}

static enum decision before_look(const struct ticker *ticker, const struct target_thread *thread)
{
	const bool asked_now = thread->stop.asked_ns == ticker->accounting.now_ns; // --stop-all

	return decision_before_look(asked_now, thread->stop.pending);
}

void tick_see(struct ticker *ticker, struct target_thread *thread)
{
	thread->seen.known = false;
	if (!thread->look_later && before_look(ticker, thread) == DECISION_LOOK)
		sleeper_see(ticker->target, thread);
}

void tick_look(struct ticker *ticker, struct target_thread *thread)
{
	const struct snapshot_mark mark = snapshot_buffer_mark(ticker->buffer);
	enum decision decision = before_look(ticker, thread);
	enum sleeper_look seen = SLEEPER_RUNS;
	struct snapshot snapshot;
	enum thread_state state;

	thread->stop.slept_before_stop = false;
	if (decision == DECISION_LOOK) {
		seen = sleeper_look(ticker->target, thread, &ticker->space.maps, ticker->buffer,
		                    &snapshot, &state);
		decision = decision_after_look(seen, BEARS_NOT_ASKED);
	}
	if (decision == DECISION_ASK)
		decision = decide_hidden(ticker, thread);
	if (decision != DECISION_FORGET)
		tick_count_exit(ticker, thread);
	if (go_on_without_stack(ticker, thread, decision))
		return;
	if (decision == DECISION_COPY) {
		take_sleeper(ticker, thread, &snapshot, &mark, state);
	} else if (decision == DECISION_MARK) {
		tick_note_unseen(thread);
		ticker->n_running += state == THREAD_RUNNING;
		tasks_bind(ticker, thread, NULL); // it may have run another one since
		accounting_not_sampled(&ticker->accounting, &thread->account, STACK_NOT_SAMPLED,
		                       state, ticker->accounting.now_ns);
		tasks_pay(ticker, &thread->account);
	} else {
		tick_note_unseen(thread);
		ticker->n_running += state == THREAD_RUNNING;
		tick_plan_stop(ticker, thread, state,
		               seen == SLEEPER_HIDDEN && thread->has_schedstat);
	}
	snapshot_buffer_take_back(ticker->buffer, &mark);
	target_attend(ticker->target, 0); // those that have stopped while this was unwound
	tick_note_ran(ticker, thread);
}

void tick_count_first_look(struct ticker *ticker, struct target_thread *thread,
                           enum thread_state state, int64_t tick_ns)
{
	const struct unwound unwound = first_look_unwound(thread);

	thread->sleep.asleep = false;
	tasks_bind(ticker, thread, NULL);
	tasks_label(ticker, thread, unwound.labels);
	accounting_count_alone(&ticker->accounting, &thread->account, tasks_stack(ticker, &unwound),
	                       state, tick_ns);
	tasks_pay(ticker, &thread->account);
}

void tick_look_after_spared(struct ticker *ticker, struct target_thread *thread)
{
	const struct snapshot_mark mark = snapshot_buffer_mark(ticker->buffer);
	struct snapshot snapshot;
	enum thread_state state;

	thread->stop.slept_before_stop = false;
	if (thread->first_look.known) {
		tick_count_first_look(ticker, thread, thread->stop.asked_state,
		                      ticker->accounting.now_ns);
		return;
	}
	switch (sleeper_look(ticker->target, thread, &ticker->space.maps, ticker->buffer, &snapshot,
	                     &state)) {
	case SLEEPER_GONE:
		thread->gone = true;
		ticker->target->n_links = 0;
		break;
	case SLEEPER_COPIED:
		take_sleeper(ticker, thread, &snapshot, &mark, state);
		break;
	default:
		tick_plan_stop(ticker, thread, thread->stop.asked_state, false);
	}
	snapshot_buffer_take_back(ticker->buffer, &mark);
	target_attend(ticker->target, 0); // those that have stopped while this was unwound
}
