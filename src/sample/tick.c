// SPDX-License-Identifier: MIT
#include "tick.h"

#include <stdio.h>
#include <string.h>

#include "arch.h"
#include "clock.h"
#include "decision.h"
#include "held_time.h"
#include "labels.h"
#include "machine_load.h"
#include "memory.h"
#include "proc.h"
#include "run_stats.h"
#include "schedule.h"
#include "sleeper.h"
#include "snapshot.h"
#include "spared_calls.h"
#include "stop_state.h"
#include "syscall_numbers.h"
#include "target.h"
#include "thread_info.h"
#include "thread_sums.h"
#include "tracee.h"
#include "unwind.h"

enum {
	// For threads that do not stop, within a tick: those that wait for a CPU arrive later,
	// between the ticks.
	MAX_WAIT_NS = 200000,
	MAX_WAIT_ALL_NS = 2000000, // for --stop-all, while others are held
	MAX_WAIT_ALL_SHARE = 4,    // and at most this part of a period
	MAX_IDLE_TICKS = 16,       // ticks in a row whose counting may be put off
	LONG_ASLEEP_NS = 500000000,
	MAX_HELD_NS = 100000, // by a stop; what lasts longer is others' doing
	MAX_LOOKS_AGAIN = 24, // at threads whose stacks go on elsewhere, in a tick
	MAX_LISTINGS = 4,     // in a tick, while threads are born
	ASK_AGAIN_TICKS = 8,
};

#define MAX_IDLE_NS (200 * NS_PER_MS) // likewise, for whoever follows the profile

// --- From the copy of a thread's stack to its frames

// What a look showed of a sleeping thread that was then asked to stop for the rest.
//
// By the time that it stops it may have woken by itself and gone on. The stack that the stop finds
// then belongs to a later moment: counted in the state and call of the look, it would be a lie, and
// sleeps in frames that need a stop would lose time to those that need none.

// Keeps the copy of a sleeping thread, unwound as far as it goes.
static void first_look_keep(struct target_thread *thread, const struct snapshot *snapshot,
                            const struct unwound *unwound)
{
	struct first_look *look = &thread->first_look;

	sleeper_take_picture(snapshot, unwound->last_sp, &look->picture);
	look->runs = thread->sleep.runs;
	look->locations =
	    memory_grow(look->locations, &look->capacity, unwound->n, sizeof(*look->locations));
	memcpy(look->locations, unwound->locations, unwound->n * sizeof(*look->locations));
	look->n = unwound->n;
	look->end = unwound->end;
	look->guessed = unwound->guessed;
	look->labels = unwound->labels;
	look->known = true;
}

// Forgets it.
static void first_look_drop(struct target_thread *thread)
{
	thread->first_look.known = false;
}

// True if the stop has found the thread elsewhere: by its registers, or, if it was scheduled more
// than once since the look, by its stack (the stop itself makes it be scheduled once). False if no
// look was kept.
static bool first_look_has_moved(const struct target_thread *thread, const struct snapshot *stopped)
{
	const struct first_look *look = &thread->first_look;
	struct stop_picture now;

	if (!look->known)
		return false;
	sleeper_take_picture(stopped, look->picture.sp + look->picture.size, &now);
	if (now.sp != look->picture.sp || now.pc != look->picture.pc)
		return true;
	// The kernel may write to its frame as it wakes it: what is left of its time, for one.
	return thread->sleep.stop_runs > look->runs + 1 && now.hash != look->picture.hash;
}

// Returns the stack that the look showed; valid until the next first_look_keep.
static struct unwound first_look_unwound(const struct target_thread *thread)
{
	const struct first_look *look = &thread->first_look;

	return (struct unwound){
	    .locations = look->locations,
	    .n = look->n,
	    .end = look->end,
	    .guessed = look->guessed,
	    .labels = look->labels,
	};
}

// Reading the rules of new code may take long: others may stop meanwhile.
void tick_walk(struct ticker *ticker, const struct snapshot *snapshot, struct unwound *ret)
{
	struct held_time *hold = ticker->setup->hold;
	const bool begun = held_time_begin_work(hold);

	unwinder_unwind(&ticker->unwinder, snapshot, ret);
	held_time_end_work(hold, begun);
	tasks_note_walk(ticker);
}

void tick_read_runtimes(struct ticker *ticker, int tid, struct snapshot *snapshot)
{
	if (snapshot_buffer_has_room(ticker->buffer))
		runtimes_read(&ticker->runtimes, tid, ticker->buffer, snapshot);
}

void tick_merge(struct ticker *ticker, int tid, const struct snapshot *snapshot,
                struct unwound *ret)
{
	struct held_time *hold = ticker->setup->hold;
	const bool begun = held_time_begin_work(hold);

	runtimes_merge(&ticker->runtimes, tid, snapshot, ret);
	held_time_end_work(hold, begun);
}

// Brings up to date what is known of the process's memory, and of the runtimes in it, through its
// thread `tid` (address_space_update). Others that stop meanwhile are served, too.
static void tick_update_space(struct ticker *ticker, int tid, bool force)
{
	struct held_time *hold = ticker->setup->hold;
	const bool begun = held_time_begin_work(hold);

	address_space_update(&ticker->space, tid, clock_now_ns(), force);
	const uint64_t program = ticker->space.start_stack;
	// The first one may have begun since the process's name was read: it counts as another one.
	if (ticker->target->resident.program != program) {
		process_title_forget(&ticker->target->title, ticker->accounting.now_ns);
		thread_info_note_exec(ticker->profile, ticker->target, ticker->accounting.now_ns);
	}
	resident_note_program(&ticker->target->resident, program);
	runtimes_update(&ticker->runtimes, tid, clock_now_ns());
	held_time_end_work(hold, begun);
}

// True if the stack may end at the root of a program that the process has begun since, or at a root
// that does not look like one.
static bool may_end_at_root(const struct unwound *stack)
{
	return stack->end == STACK_NO_RULE || stack->end == STACK_NO_RETURN;
}

// True if the walk may have ended there because the maps are not those of this moment: they also
// say how far a stack reaches.
static bool may_end_by_maps(enum stack_end end)
{
	switch (end) {
	case STACK_NO_RULE:
	case STACK_UNREADABLE:
	case STACK_NOT_COPIED:
	case STACK_NO_PROGRESS:
	case STACK_NO_RETURN:
		return true;
	default:
		return false;
	}
}

// Notes where the outermost frames of a whole stack begin: as many as are kept of a far deeper one.
static void learn_outer_frames(const struct ticker *ticker, struct target_thread *thread,
                               const struct snapshot *snapshot, const struct unwound *stack)
{
	const uint32_t n_outer = ticker->unwinder.huge_frames;
	const size_t first = stack->n > n_outer ? stack->n - n_outer : 0;

	snapshot_hint_whole(&thread->hint, snapshot, stack->sps[first], stack->base);
}

// Notes what the stack tells about where the thread's next copy has to look.
static void learn_for_next_copy(struct ticker *ticker, struct target_thread *thread,
                                const struct snapshot *snapshot, const struct unwound *stack)
{
	languages_learn(&ticker->unwinder, thread->tid, &thread->hint, stack);
	const bool is_cut =
	    stack->end == STACK_NOT_COPIED && snapshot_goes_on_at(snapshot, stack->missing);
	if (is_cut)
		snapshot_hint_grow(&thread->hint, snapshot);
	if (stack->end == STACK_TOO_DEEP)
		snapshot_hint_deep(&thread->hint, snapshot, stack->reached_sp, stack->last_sp);
	if (stack->end == STACK_COMPLETE)
		learn_outer_frames(ticker, thread, snapshot, stack);
	if (stack->end != STACK_COMPLETE && stack->end != STACK_TOO_DEEP)
		snapshot_hint_ended(&thread->hint, snapshot);
	if (stack->end == STACK_UNREADABLE) {
		thread->hint.misled |= thread->hint.base != 0; // it may have cut the copy
		thread->hint.base = 0;
	}
	snapshot_hint_others(&thread->hint, snapshot, is_cut ? 0 : stack->missing,
	                     stack->end == STACK_COMPLETE || stack->end == STACK_TOO_DEEP);
	snapshot_hint_base(&thread->hint, snapshot, stack->base);
}

static void unwind(struct ticker *ticker, struct target_thread *thread,
                   const struct snapshot *snapshot, struct unwound *ret)
{
	const uint32_t generation = ticker->space.generation;

	ticker->runtimes_known = true;
	if (ticker->space.is_foreign) {
		*ret = (struct unwound){.end = STACK_FOREIGN};
		return;
	}
	tick_walk(ticker, snapshot, ret);
	if (may_end_at_root(ret))
		address_space_note_exec(&ticker->space, thread->tid);
	if (ticker->space.stale && ticker->forced_ns != ticker->accounting.now_ns) {
		// An address in no mapping: perhaps the mapping has come since the tick began.
		ticker->forced_ns = ticker->accounting.now_ns;
		tick_update_space(ticker, thread->tid, true);
		if (ticker->space.generation != generation)
			tick_walk(ticker, snapshot, ret);
	}
	ticker->space.unsure |= may_end_by_maps(ret->end);
	learn_for_next_copy(ticker, thread, snapshot, ret);
	ret->labels = LABELS_NONE;
	ticker->runtimes_known = runtimes_merge(&ticker->runtimes, thread->tid, snapshot, ret);
}

// Unwinds the copy, with newer maps if needed, and notes what that tells for the thread's next
// copy. Others that stop meanwhile are copied and let go (ticker_serve).
static void tick_unwind(struct ticker *ticker, struct target_thread *thread,
                        const struct snapshot *snapshot, struct unwound *ret)
{
	struct held_time *hold = ticker->setup->hold;
	const bool begun = held_time_begin_work(hold);

	unwind(ticker, thread, snapshot, ret);
	held_time_end_work(hold, begun);
}

// --- A thread that is looked at without a stop

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

// Counts the tick that first found the thread about to end, if it was not the last one for it.
static void tick_count_exit(struct ticker *ticker, struct target_thread *thread)
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

// Plans the stop of a thread that only a stop can show; nothing is done to it yet. `asleep`: it
// sleeps, and will sleep on after it. In a program for another processor mode a stop shows nothing,
// and cuts calls that cannot be mended: its threads are counted at once.
static void tick_plan_stop(struct ticker *ticker, struct target_thread *thread,
                           enum thread_state state, bool asleep)
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

// True if it is worth looking for sleepers that wait for a CPU by now.
static bool tick_looks_for_woken(const struct ticker *ticker)
{
	return woken_is_worth_looks(ticker->setup->load, ticker->target, ticker->n_others);
}

// Reads again who has the lock that a sleeper waits for, where that is asked for: others may have
// had it since. True if that is another one, or not known any more.
static bool tick_renew_holder(struct ticker *ticker, struct target_thread *thread)
{
	const struct profile *profile = ticker->profile;
	struct account *account = &thread->account;
	const uint32_t last =
	    account->sampled ? profile->samples[account->sample].wait : (uint32_t)WAIT_NONE;

	if (!ticker->setup->locks || thread->call.nr != SYS_futex || last == WAIT_NONE ||
	    !profile->waits[last].descriptor[0] ||
	    wait_reasons_has_holder(ticker->target, thread, &profile->waits[last]))
		return false;
	account->wait = wait_reasons_read(&ticker->waits, ticker->target, thread);
	return account->wait != last;
}

// Counts a sleeper once more, with the lock's holder of this tick.
static void tick_count_sleeper(struct ticker *ticker, struct target_thread *thread)
{
	struct account *account = &thread->account;

	if (!tick_renew_holder(ticker, thread)) {
		accounting_again(&ticker->accounting, account);
		return;
	}
	const struct sample last = ticker->profile->samples[account->sample];
	accounting_count(&ticker->accounting, account, last.stack, last.state,
	                 ticker->accounting.now_ns);
}

// Counts a thread that has slept on once more: as running if it waits for a CPU by now.
//
// A thread that is ready to run goes on with the sleeper's sample all the same.
static void tick_keep_sleeper(struct ticker *ticker, struct target_thread *thread)
{
	if (!tick_looks_for_woken(ticker) || !woken_is_ready(ticker->target, thread)) {
		tick_count_sleeper(ticker, thread);
		return;
	}
	ticker->n_running++;
	accounting_repeat_in_state(&ticker->accounting, &thread->account, THREAD_RUNNABLE);
}

// Notes that the thread runs, or that what it sleeps in is not seen.
static void tick_note_unseen(struct target_thread *thread)
{
	thread->sleep.asleep = false;
	thread->account.wait = WAIT_NONE;
}

// Notes that the thread has run, or is looked at anew: it may have another name, and children.
static void tick_note_ran(struct ticker *ticker, struct target_thread *thread)
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

// Sees what the thread does, for tick_look in this tick, unless it is to be looked at later.
static void tick_see(struct ticker *ticker, struct target_thread *thread)
{
	thread->seen.known = false;
	thread->first_ns = 0;
	if (!thread->look_later && before_look(ticker, thread) == DECISION_LOOK) {
		sleeper_see(ticker->target, thread);
		thread->first = thread->last;
		thread->first_ns = thread->has_schedstat ? ticker->accounting.now_ns : 0;
	}
}

// Looks at the thread, and does what follows (decision.h): counts it, plans its stop, or waits.
static void tick_look(struct ticker *ticker, struct target_thread *thread)
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

// Counts a sleeper that was to be stopped with what its look showed (first_look), and none of the
// later ticks for which it may be pending.
static void tick_count_first_look(struct ticker *ticker, struct target_thread *thread,
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

// Looks again at a thread that ran a moment ago, was to be stopped, and sleeps now: it is counted
// in the state in which it was found first. One that slept, and has woken since, is counted as it
// slept.
static void tick_look_after_spared(struct ticker *ticker, struct target_thread *thread)
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

// --- Stops, and the tick

void ticker_init(struct ticker *ticker, struct target *target, const struct ticker_setup *setup)
{
	*ticker = (struct ticker){
	    .setup = setup,
	    .target = target,
	    .profile = setup->profile,
	    .stats = setup->hold->stats,
	    .buffer = setup->buffer,
	};
	ticker->accounting = (struct accounting){
	    .profile = ticker->profile,
	    .stats = ticker->stats,
	};
	target->attend = setup->attend;
	target->attend_context = setup->attend_context;
	idle_check_init(&ticker->idle_check, setup->sums, setup->load);
	wait_reasons_init(&ticker->waits, setup->profile, setup->hold->stats, setup->kernel,
	                  setup->locks);
	stops_init(&ticker->stops, setup->hold, setup->buffer, target, setup->stop_all);
	address_space_init(&ticker->space, setup->modules, target->pid);
	ticker->space.resident = &target->resident;
	unwinder_init(&ticker->unwinder, &ticker->space, setup->profile, setup->rules,
	              setup->max_frames);
	ticker->unwinder.huge_frames = setup->huge_frames;
	runtimes_init(&ticker->runtimes, &(struct runtimes_setup){
	                                     .kinds = setup->runtimes,
	                                     .frames = setup->runtime_frames,
	                                     .max_frames = setup->max_frames,
	                                     .space = &ticker->space,
	                                     .resident = &target->resident,
	                                     .profile = setup->profile,
	                                     .stats = ticker->stats,
	                                 });
	target->runtimes = &ticker->runtimes;
	tasks_init(&ticker->tasks, &ticker->runtimes.setup, setup->system_tasks,
	           setup->no_creators);
}

void ticker_deinit(struct ticker *ticker)
{
	tasks_deinit(&ticker->tasks);
	runtimes_deinit(&ticker->runtimes);
	unwinder_deinit(&ticker->unwinder);
	address_space_deinit(&ticker->space);
	stops_deinit(&ticker->stops);
	wait_reasons_deinit(&ticker->waits);
	*ticker = (struct ticker){0};
}

// Notes what the kernel has counted for the thread since it was asked to stop.
static void note_figures(struct target_thread *thread, const struct stop *stop,
                         const struct proc_schedstat *now)
{
	// One that has executed another program may have another thread's figures.
	if (!thread->has_schedstat || now->runs == 0 || now->cpu_ns < stop->asked.cpu_ns ||
	    now->delay_ns < stop->asked.delay_ns)
		return;
	thread->account.pending_cpu_ns = (int64_t)(now->cpu_ns - stop->asked.cpu_ns);
	thread->account.pending_delay_ns = (int64_t)(now->delay_ns - stop->asked.delay_ns);
}

// Counts a sleeper that had woken and gone on when it stopped: by what the look showed, and, while
// it then waited for a CPU to stop on, by what the stop showed.
static void count_moved(struct ticker *ticker, const struct stop *stop)
{
	struct account *account = &stop->thread->account;
	struct unwound unwound;

	tick_count_first_look(ticker, stop->thread, stop->state, stop->tick_ns);
	note_figures(stop->thread, stop, &stop->stopped);
	if (account->n_pending_ticks == 0)
		return;
	tick_unwind(ticker, stop->thread, &stop->snapshot, &unwound);
	tasks_label(ticker, stop->thread, unwound.labels);
	account->wait = wait_reasons_of_call(&ticker->waits, stop->how.call);
	accounting_count_pending(&ticker->accounting, account, tasks_stack(ticker, &unwound));
}

// Puts off the thread's sample, if its stack goes on where nothing was copied and that is known
// now. If it cannot be put off, the next tick looks at the thread anew, even if it sleeps on.
static bool put_off(const struct ticker *ticker, const struct stop *stop, enum stack_end end)
{
	struct target_thread *thread = stop->thread;

	if (end == STACK_COMPLETE || !snapshot_hint_knows_more(&thread->hint, &stop->snapshot) ||
	    !snapshot_hint_may_look_again(&thread->hint))
		return false;
	thread->sleep.asleep = thread->sleep.stop_woke_it = false;
	thread->stop.asked_state = stop->state;
	thread->look_again = ticker->looks_again && stop->tick_ns == ticker->accounting.now_ns &&
	                     thread->account.n_pending_ticks == 0 &&
	                     !tracee_is_in_rest(thread->tid);
	return thread->look_again;
}

static int64_t limit(int64_t ns, int64_t most_ns)
{
	if (ns < 0)
		return 0;
	return ns < most_ns ? ns : most_ns;
}

// Returns for how long the sampler has run since the tick began. It was on a thread's CPU for no
// longer than that.
static int64_t ran_in_tick(const struct ticker *ticker)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - ticker->begin_cpu_ns;
}

// Notes what the kernel has counted by the stop; and, of a thread that ran, what the stop took from
// it: the kernel counts neither that, nor that it waited because the sampler was on its CPU.
static void note_stop(struct ticker *ticker, const struct stop *stop)
{
	struct target_thread *thread = stop->thread;
	const int64_t delay_ns = (int64_t)(stop->stopped.delay_ns - stop->asked.delay_ns);

	if (stop->state == THREAD_RUNNING) {
		thread->held_ns += limit(stop->released_ns - stop->found_ns, MAX_HELD_NS);
		thread->displaced_ns += limit(delay_ns, ran_in_tick(ticker));
		thread->released_ns = stop->released_ns;
		thread->released_delay_ns = (int64_t)stop->stopped.delay_ns;
	}
	profile_note_figures(ticker->profile, thread->account.own,
	                     &(struct thread_figures){stop->found_ns, (int64_t)stop->stopped.cpu_ns,
	                                              (int64_t)stop->stopped.delay_ns,
	                                              thread->held_ns, thread->displaced_ns});
}

// After a stop the thread waits for its CPU again, if the sampler is on it, until the tick is over.
static void settle_release(const struct ticker *ticker, struct target_thread *thread)
{
	const int64_t most_ns = ticker->ended_ns - thread->released_ns;
	const int64_t waited_ns = (int64_t)thread->last.delay_ns - thread->released_delay_ns;

	if (thread->released_ns == 0)
		return;
	thread->displaced_ns += limit(waited_ns, limit(most_ns, ticker->cpu_ns));
	thread->released_ns = 0;
}

// Finds out in which state the thread was when its tick was due: by its figures when the tick first
// saw it. One that has been woken and waits for its first CPU passes for asleep then; when it is
// looked at, it may be on a CPU that the stop of another has freed.
static void settle_state(struct ticker *ticker, struct stop *stop)
{
	struct target_thread *thread = stop->thread;
	const struct registers *registers = &stop->snapshot.registers;
	const struct stop_seen seen = {
	    .asked_state = stop->state,
	    .asked_call = thread->call.running ? STOP_STATE_ANY_CALL : thread->call.nr,
	    .call = stop->how.call,
	    .waits =
	        stop_state_waits(stop->how.call, registers->value[ARCH_NATIVE->syscall_args[1]]),
	    .group_stop = stop->how.group_stop,
	    .has_runs = thread->has_schedstat && stop->stopped.runs != 0,
	    .asked = stop->first,
	    .stopped = stop->stopped,
	    .due_ns = stop->due_ns,
	    .found_ns = stop->found_ns,
	};

	stop->state = stop_state(&seen);
	note_figures(thread, stop, &stop->stopped);
	if (seen.has_runs)
		note_stop(ticker, stop);
}

// Notes who traces a thread whose stop was denied. Another profiler may have let it go already.
static void note_tracer(struct run_stats *stats, int tid)
{
	struct proc_status status;
	char name[PROC_NAME_SIZE];

	if (stats->tracer_pid || !proc_read_status(tid, &status) || !status.tracer_pid ||
	    !proc_read_name(status.tracer_pid, status.tracer_pid, name))
		return;
	stats->tracer_pid = status.tracer_pid;
	snprintf(stats->tracer, sizeof(stats->tracer), "%s", name);
}

static void count_denied(struct ticker *ticker, const struct stop *stop)
{
	if (!stop->denied)
		return;
	ticker->stats->denied++;
	note_tracer(ticker->stats, stop->thread->tid);
}

static void count_stop(struct ticker *ticker, struct stop *stop)
{
	struct target_thread *thread = stop->thread;
	const bool ends_now = stop->exits && thread->stop.exits_ns == 0;
	struct unwound unwound;

	if (stop->exits)
		tick_count_exit(ticker, thread);
	count_denied(ticker, stop);
	ticker->stats->sleeper_stops += stop->asleep && stop->copied;
	// The address space may have been read in the middle of the exec: try the walk again.
	ticker->space.stale |= stop->how.exec;
	if (stop->copied && !stop->failed && first_look_has_moved(thread, &stop->snapshot)) {
		count_moved(ticker, stop);
	} else if (stop->copied && !stop->failed) {
		settle_state(ticker, stop);
		tick_unwind(ticker, thread, &stop->snapshot, &unwound);
		if (put_off(ticker, stop, unwound.end))
			return;
		if (stop->asleep)
			sleeper_take_picture(&stop->snapshot, unwound.last_sp, &thread->picture);
		if (thread->account.wait == WAIT_NONE)
			thread->account.wait = wait_reasons_of_call(&ticker->waits, stop->how.call);
		tasks_bind(ticker, thread, &stop->snapshot);
		tasks_label(ticker, thread, unwound.labels);
		accounting_count(&ticker->accounting, &thread->account,
		                 tasks_stack(ticker, &unwound), stop->state, stop->tick_ns);
		tasks_pay(ticker, &thread->account);
	} else if (ends_now) {
		// Whoever ends within a tick is not counted in it.
		thread->sleep.asleep = false;
		thread->stop.exits_ns = stop->tick_ns;
	} else if (stop->copied || stop->denied || stop->exits ||
	           thread->account.n_pending_ticks > 0) {
		// What this tick and earlier ones saw of it is kept, even if it has ended.
		thread->sleep.asleep = false;
		tasks_unbind(ticker, thread);
		profile_label_thread(ticker->profile, thread->account.thread, LABELS_NONE);
		accounting_not_sampled(&ticker->accounting, &thread->account,
		                       ticker->space.is_foreign ? STACK_FOREIGN : STACK_NOT_SAMPLED,
		                       stop->state, stop->tick_ns);
	}
}

// Unwinds and counts what has arrived of the ticks before before_ns; more may arrive meanwhile.
static void count_arrived_before(struct ticker *ticker, int64_t before_ns)
{
	struct stops *stops = &ticker->stops;
	size_t n_counted = 1;

	if (ticker->counting)
		return;
	ticker->counting = true;
	while (n_counted > 0) {
		n_counted = 0;
		for (size_t i = 0; i < stops->count; i++) {
			struct stop *stop = &stops->items[i];
			if (!stop->over || stop->counted || stop->tick_ns >= before_ns)
				continue;
			count_stop(ticker, stop);
			stops_note_counted(stops, stop);
			target_attend(ticker->target, 0);
			n_counted++;
		}
	}
	ticker->counting = false;
}

static void count_arrived(struct ticker *ticker)
{
	count_arrived_before(ticker, INT64_MAX);
}

// Call it only between ticks: a tick goes by positions in the list.
static void count_stops(struct ticker *ticker)
{
	count_arrived(ticker);
	stops_strike_off(&ticker->stops);
}

// Waits for those that were asked at since_ns or later.
static void wait_for_stops(struct ticker *ticker, int64_t since_ns, int64_t until_ns)
{
	while (!stops_wait(&ticker->stops, &ticker->space.maps, ticker->setup->load->n_cpus,
	                   since_ns, until_ns)) {
		stops_let_all_go(&ticker->stops); // better than holding them for long
		count_stops(ticker);
	}
}

void ticker_serve(struct ticker *ticker)
{
	if (ticker->space.maps.changing)
		return;
	stops_poll(&ticker->stops, &ticker->space.maps, ticker->accounting.now_ns);
	stops_let_all_go(&ticker->stops); // with stop_all, between ticks
}

void ticker_attend(struct ticker *ticker)
{
	ticker_serve(ticker);
	count_arrived(ticker);
}

// Asks and waits; returns how many were spared (stops_ask).
static size_t ask_and_wait(struct ticker *ticker, size_t from, bool spares)
{
	if (ticker->stops.count == 0)
		return 0;
	int64_t wait_ns = MAX_WAIT_NS;

	if (ticker->stops.hold_all) { // others are held meanwhile
		wait_ns = ticker->profile->period_ns / MAX_WAIT_ALL_SHARE;
		wait_ns = wait_ns < MAX_WAIT_ALL_NS ? wait_ns : MAX_WAIT_ALL_NS;
	}
	const size_t n_spared = stops_ask(&ticker->stops, &ticker->space.maps, from, spares);
	// Do not wait for those of earlier ticks, which may still take long.
	wait_for_stops(ticker, ticker->accounting.now_ns, clock_now_ns() + wait_ns);
	return n_spared;
}

// Stops the threads that are planned from `from` on, and copies them.
static void stop_planned(struct ticker *ticker, size_t from)
{
	const struct target *target = ticker->target;
	size_t n_spared = ask_and_wait(ticker, from, true);
	const size_t n_late = ticker->stops.count;

	for (size_t i = 0; n_spared > 0 && i < target->n_threads; i++) {
		if (!target->threads[i]->stop.slept_before_stop)
			continue;
		n_spared--;
		tick_look_after_spared(ticker, target->threads[i]);
	}
	if (ticker->stops.count > n_late)
		ask_and_wait(ticker, n_late, false);
}

static void finish_stops(struct ticker *ticker)
{
	stops_let_all_go(&ticker->stops);
	count_stops(ticker);
}

// Stops those threads again whose samples were put off; each stop may show one more stack.
static void look_again(struct ticker *ticker)
{
	struct target *target = ticker->target;
	bool is_done = false;

	for (int i = 0; i < MAX_LOOKS_AGAIN && !is_done; i++) {
		const size_t from = ticker->stops.count;
		ticker->looks_again = i + 1 < MAX_LOOKS_AGAIN;
		is_done = true;
		for (size_t t = 0; t < target->n_threads; t++) {
			struct target_thread *thread = target->threads[t];
			const enum thread_state state = thread->stop.asked_state;
			if (!thread->look_again)
				continue;
			thread->look_again = is_done = false;
			tick_plan_stop(ticker, thread, state,
			               state != THREAD_RUNNING && state != THREAD_RUNNABLE &&
			                   thread->has_schedstat);
		}
		if (!is_done)
			stop_planned(ticker, from);
		finish_stops(ticker);
	}
	ticker->looks_again = false;
}

void ticker_collect(struct ticker *ticker)
{
	if (ticker->stops.count == 0)
		return;
	stops_poll(&ticker->stops, &ticker->space.maps, 0);
	stops_let_all_go(&ticker->stops);
	ticker->looks_again = !ticker->stops.hold_all;
	count_stops(ticker);
	look_again(ticker);
}

// Stops, for --stop-all, first all that run, so that nothing moves while the sleepers are looked
// at.
static void stop_runners_first(struct ticker *ticker)
{
	const size_t from = ticker->stops.count;

	for (size_t i = 0; i < ticker->target->n_threads; i++) {
		struct target_thread *thread = ticker->target->threads[i];
		if (!thread->stop.pending && !tracee_is_in_rest(thread->tid) &&
		    sleeper_runs(ticker->target, thread)) {
			tick_note_unseen(thread);
			tick_note_ran(ticker, thread); // tick_look leaves it alone in this tick
			tick_plan_stop(ticker, thread, THREAD_RUNNING, false);
		}
	}
	ask_and_wait(ticker, from, true);
}

// True if nothing has happened: all threads slept at the last tick, none has run since, and none is
// about to.
static bool is_idle(struct ticker *ticker)
{
	const struct target *target = ticker->target;
	const bool may_be_ready = ticker->n_others != 0 && target->n_threads <= WOKEN_MAX_LOOKS;

	// n_links: the list of threads is to be read again.
	if (!ticker->all_asleep || ticker->stops.count > 0 || target->n_links == 0)
		return false;
	switch (idle_check_since_last(&ticker->idle_check, target, ticker->n_others)) {
	case IDLE_NO:
		return false;
	case IDLE_YES:
		if (!may_be_ready)
			return true;
		break;
	case IDLE_UNSURE:
		break;
	}
	for (size_t i = 0; i < target->n_threads; i++) {
		if (!sleeper_is_blocked(target, target->threads[i]))
			return false;
		target_attend(target, i);
	}
	return true;
}

// Counts several idle ticks at once: with many sleeping threads, counting each of them is most of
// the work of a tick in which nothing happened.
static void count_idle_ticks(struct ticker *ticker)
{
	struct target *target = ticker->target;

	for (size_t i = 0; ticker->n_idle_ticks > 0 && i < target->n_threads; i++) {
		accounting_slept(&ticker->accounting, &target->threads[i]->account,
		                 ticker->n_idle_ticks);
		target_attend(target, i);
	}
	ticker->n_idle_ticks = 0;
}

static void look_at(struct ticker *ticker, struct target_thread *thread)
{
	tick_look(ticker, thread);
	settle_release(ticker, thread);
	// Those of a thread that has yet to stop are older.
	if (thread->stop.pending || ticker->accounting.priming)
		return;
	thread_info_note_kernel_figures(ticker->profile, thread, ticker->stops.due_ns);
}

// True if the thread sleeps, and has slept for a while.
static bool is_asleep(const struct ticker *ticker, const struct target_thread *thread)
{
	return thread->sleep.asleep && !thread->sleep.stop_woke_it && !thread->stop.pending &&
	       ticker->accounting.now_ns - thread->ran_ns > LONG_ASLEEP_NS;
}

static bool may_have_woken(const struct ticker *ticker)
{
	const struct ticker_setup *setup = ticker->setup;

	// Without the sums, this also tells that none has just begun to run.
	return (!thread_sums_are_known(setup->sums) || tick_looks_for_woken(ticker)) &&
	       woken_may_be_ready(setup->load, ticker->target, ticker->n_others, ticker->n_running);
}

// The sums of all threads may spare a look at each of n_sleepers. To know the others' part of them,
// these are read again: where there are more of them, a look at the sleepers costs less.
static void look_at_sleepers(struct ticker *ticker, size_t n_sleepers, bool has_stopped)
{
	struct idle_check *check = &ticker->idle_check;
	const bool asks = n_sleepers > ticker->target->n_threads / 2;
	const bool has_woken = asks && may_have_woken(ticker);
	const bool is_valid =
	    asks && idle_check_is_valid(check, ticker->target, has_woken, has_stopped);

	for (size_t i = 0; i < ticker->target->n_threads; i++) {
		struct target_thread *thread = ticker->target->threads[i];
		target_attend(ticker->target, i);
		if (!thread->look_later)
			continue;
		if (!is_valid)
			look_at(ticker, thread);
		else if (has_woken)
			tick_keep_sleeper(ticker, thread);
		else
			accounting_again(&ticker->accounting, &thread->account);
	}
	if (!asks)
		check->known = false;
	else if (!is_valid)
		idle_check_settle(check, ticker->target);
}

// Sees what each thread does that may run. Returns how many others there are, which sleep for long.
static size_t see_all(struct ticker *ticker)
{
	struct target *target = ticker->target;
	size_t n_sleepers = 0;

	for (size_t i = 0; i < target->n_threads; i++) {
		struct target_thread *thread = target->threads[i];
		target_attend(target, i);
		thread->look_later = is_asleep(ticker, thread);
		n_sleepers += thread->look_later;
		thread->stop.slept_before_stop = false; // with --stop-all, it may have been spared
		tick_see(ticker, thread);
		thread->is_seen_running = thread->seen.known && thread->seen.look == SLEEPER_RUNS;
	}
	return n_sleepers;
}

static void look_at_runners(struct ticker *ticker)
{
	struct target *target = ticker->target;

	for (size_t i = 0; i < target->n_threads; i++) {
		target_attend(target, i);
		if (target->threads[i]->is_seen_running)
			look_at(ticker, target->threads[i]);
	}
}

// Looks at the others. `again`: some were stopped meanwhile, so that what was seen is old.
static void look_at_others(struct ticker *ticker, bool again)
{
	struct target *target = ticker->target;

	for (size_t i = 0; i < target->n_threads; i++) {
		struct target_thread *thread = target->threads[i];
		target_attend(target, i);
		if (thread->look_later || thread->is_seen_running)
			continue;
		thread->seen.known &= !again;
		look_at(ticker, thread);
	}
}

// Looks first at threads that may run, which may show that no other does. Those found running are
// stopped before any other is looked at for good. The reason: a thread that falls asleep between
// its look and its stop is seen asleep, so one that wakes meanwhile has to be seen running; else
// threads would be seen too seldom in what they do first when they have woken.
static void look_at_all(struct ticker *ticker)
{
	const size_t n_asked = ticker->stops.count;

	ticker->n_running = 0;
	const size_t n_sleepers = see_all(ticker);
	look_at_runners(ticker);
	stop_planned(ticker, n_asked);
	// Those of earlier ticks that have stopped meanwhile are looked at anew: first, what they
	// showed then is counted.
	count_arrived_before(ticker, ticker->accounting.now_ns);
	const size_t n_runners = ticker->stops.count;
	look_at_others(ticker, n_runners > n_asked);
	stop_planned(ticker, n_runners);
	if (n_sleepers > 0) {
		const size_t n_stopped = ticker->stops.count;
		look_at_sleepers(ticker, n_sleepers, n_stopped > n_asked);
		stop_planned(ticker, n_stopped);
	}
}

static void add_threads(struct ticker *ticker, size_t n_new)
{
	struct target *target = ticker->target;

	thread_info_add(ticker->profile, target, n_new, ticker->accounting.from_ns);
	for (size_t i = target->n_threads - n_new; i < target->n_threads; i++) {
		target->threads[i]->hint.of_process = ticker->space.languages;
		target->threads[i]->hint.resident = &target->resident;
	}
}

// Finds the threads that were born since the last tick. Returns how many.
static size_t find_born(struct ticker *ticker)
{
	size_t n_born = 0, n_new = 1;

	// To get to know a thread takes long enough for others to be born: lists once more, so that
	// all who are there at the first look belong to the tick, and none later.
	for (int i = 0; n_new > 0 && i < MAX_LISTINGS; i++) {
		if (i > 0)
			machine_load_read(ticker->setup->load, &ticker->last_pid);
		n_new = target_list_threads(ticker->target, ticker->last_pid);
		n_born += n_new;
		add_threads(ticker, n_new);
		ticker->space.unsure |= n_new > 0; // they have stacks
		if (i == 0 || n_new > 0)
			tick_update_space(ticker, target_live_tid(ticker->target), false);
	}
	return n_born;
}

// Forgets the threads that have gone; false if there were none.
static bool forget_gone(struct ticker *ticker)
{
	if (!target_has_gone(ticker->target))
		return false;
	// Meanwhile others may have been found to have ended, in the middle of their stops.
	count_stops(ticker);
	thread_info_note_ends(ticker->profile, ticker->target);
	target_forget_gone(ticker->target);
	ticker->target->n_links = 0;
	return true;
}

// Looks at the thread that has executed another program, if it was not known yet: all others have
// gone. Who else is born while a tick lasts belongs to the next one: counted beside those that end
// in the same tick, threads would be seen too often in what they do first.
static void look_at_heir(struct ticker *ticker)
{
	struct target *target = ticker->target;
	const size_t n_asked = ticker->stops.count;
	const size_t n_new = find_born(ticker);

	for (size_t i = target->n_threads - n_new; i < target->n_threads; i++) {
		target->threads[i]->look_later = false;
		tick_see(ticker, target->threads[i]);
		look_at(ticker, target->threads[i]);
	}
	stop_planned(ticker, n_asked);
	finish_stops(ticker);
}

static void note_all_asleep(struct ticker *ticker)
{
	ticker->all_asleep = true;
	for (size_t i = 0; i < ticker->target->n_threads; i++) {
		ticker->all_asleep &= ticker->target->threads[i]->sleep.asleep;
		target_attend(ticker->target, i);
	}
}

static void update_title(struct ticker *ticker)
{
	struct target *target = ticker->target;

	if (process_title_update(&target->title, target->pid, target_live_tid(target),
	                         &target->resident, ticker->accounting.now_ns))
		thread_info_note_title(ticker->profile, target);
}

// Learns what must be known of the target before the first look.
static void start(struct ticker *ticker)
{
	struct target *target = ticker->target;

	thread_info_begin_process(ticker->profile, target, ticker->accounting.from_ns);
	target_list_threads(target, ticker->last_pid);
	add_threads(ticker, target->n_threads);
	tick_update_space(ticker, target_live_tid(target), true);
	target->title.due_ns = 0; // an old process does not get one soon
	update_title(ticker);
	ticker->started = true;
}

void ticker_prime(struct ticker *ticker, int64_t now_ns)
{
	ticker->accounting.from_ns = ticker->accounting.now_ns = now_ns;
	ticker->n_others = ticker->last_pid = -1;
	start(ticker);
	ticker->accounting.priming = true;
	tasks_look(ticker);
	idle_check_since_last(&ticker->idle_check, ticker->target, ticker->n_others);
	look_at_all(ticker);
	tasks_look_again(ticker);
	note_all_asleep(ticker);
	ticker->accounting.priming = false;
}

// Nothing has changed since the last tick: what it saw is true for one more.
static void note_idle_tick(struct ticker *ticker, const struct stretch *stretch)
{
	ticker->accounting.now_ns = stretch->until_ns;
	tasks_begin(ticker, true);
	const uint64_t max = (uint64_t)(MAX_IDLE_NS / ticker->profile->period_ns);
	if (++ticker->n_idle_ticks >= (max < MAX_IDLE_TICKS ? max : MAX_IDLE_TICKS) ||
	    ticker->setup->counts_at_once)
		count_idle_ticks(ticker);
	if (ticker->setup->counts_at_once)
		tasks_settle(ticker, false);
}

bool ticker_tick(struct ticker *ticker, const struct stretch *stretch)
{
	struct target *target = ticker->target;

	ticker->begin_cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	ticker->n_others = machine_load_read(ticker->setup->load, &ticker->last_pid);
	if (is_idle(ticker) && !tasks_is_looking(ticker)) {
		note_idle_tick(ticker, stretch);
		return true;
	}
	count_idle_ticks(ticker);
	tasks_begin(ticker, false);
	ticker->accounting.from_ns = stretch->from_ns;
	ticker->accounting.now_ns = stretch->until_ns;
	ticker->stops.due_ns = stretch->due_ns;
	if (!ticker->started) {
		start(ticker);
	} else {
		find_born(ticker);
		update_title(ticker);
	}
	if (ticker->stops.hold_all)
		stop_runners_first(ticker);
	count_stops(ticker); // those that have arrived in the middle of another process's tick
	ticker->looks_again = !ticker->stops.hold_all;
	look_at_all(ticker);
	finish_stops(ticker);
	look_again(ticker);
	if (forget_gone(ticker) && target->n_threads == 0) {
		look_at_heir(ticker);
		forget_gone(ticker);
	}
	note_all_asleep(ticker);
	tasks_look(ticker);
	ticker->stats->pages_hidden |= target->resident.hidden;
	wait_reasons_name_sockets(&ticker->waits, target, false);
	target_attend(target, 0);
	ticker->ended_ns = clock_now_ns();
	ticker->cpu_ns = ran_in_tick(ticker);
	return target->n_threads > 0;
}

// Counts those that have not stopped, and ends.
static void count_unseen(struct ticker *ticker)
{
	for (size_t i = 0; i < ticker->stops.count; i++) {
		const struct stop *stop = &ticker->stops.items[i];
		if (stop->counted)
			continue;
		const struct proc_schedstat now = sleeper_figures(ticker->target, stop->thread);
		note_figures(stop->thread, stop, &now);
		// The task that it ran may have been counted as parked, or elsewhere, since.
		tasks_unbind(ticker, stop->thread);
		accounting_not_sampled(&ticker->accounting, &stop->thread->account,
		                       STACK_NOT_SAMPLED, stop->state, stop->tick_ns);
	}
	ticker->stops.count = 0;
}

// Reads what the kernel has counted in the end of those that do not sleep.
static void note_last_figures(struct ticker *ticker)
{
	const int64_t now_ns = clock_now_ns();

	for (size_t i = 0; i < ticker->target->n_threads; i++) {
		struct target_thread *thread = ticker->target->threads[i];
		if (!thread->has_schedstat || thread->sleep.asleep)
			continue;
		const struct proc_schedstat now = sleeper_figures(ticker->target, thread);
		if (now.runs == 0)
			continue;
		thread->last = now;
		thread_info_note_kernel_figures(ticker->profile, thread, now_ns);
	}
}

void ticker_finish(struct ticker *ticker)
{
	count_idle_ticks(ticker);
	stops_let_all_go(&ticker->stops);
	count_stops(ticker);
	count_unseen(ticker);
	note_last_figures(ticker);
	tasks_settle(ticker, true);
	wait_reasons_name_sockets(&ticker->waits, ticker->target, true);
}
