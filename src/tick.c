#include "tick.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "events.h"
#include "memory.h"
#include "run.h"
#include "sleeper.h"
#include "target.h"
#include "tracee.h"
#include "unwind_check.h"

enum {
	// For threads that do not stop, within a tick: those that wait for a CPU come when they
	// come, between the ticks.
	MAX_WAIT_NS = 200000,
	MAX_WAIT_ALL_NS = 2000000,    // for --stop-all, while others are held
	LAST_WAIT_NS = 50000000,      // and at the end
	FIRST_NAME_NS = 5000000,      // a new thread is soon given its name
	MAX_NAME_AGE_NS = 1000000000, // later ones are rare
	MAX_COPY_TRIES = 7,
	LONG_WAIT_NS = 100000, // for a stop: longer than a hold should be
	WAKE_SLACK_NS = 20000, // from a stop to the moment when the sampler is ready to run
};

// A thread that was asked to stop.
struct tick_stop {
	struct target_thread *thread;
	enum thread_state state; // when it was asked
	bool asleep;             // it was asleep then, and will sleep on
	bool copied;             // snapshot is there
	bool failed;             // it stopped, but its stack could not be taken
	int64_t free_ns;         // the last time at which it is known not to have been held
	int64_t tick_ns;         // the last tick that it stands for
	struct tracee_stop how;
	struct snapshot snapshot;
};

bool ticker_init(struct ticker *ticker, const struct ticker_setup *setup)
{
	*ticker = (struct ticker){
	    .target = setup->target,
	    .profile = setup->profile,
	    .events = setup->events,
	    .run = setup->run,
	    .stop_all = setup->stop_all,
	    .cpu_clock_ns = -1,
	    .own_schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC),
	};
	if (!snapshot_buffer_init(&ticker->buffer))
		return false;
	address_space_init(&ticker->space, setup->modules, setup->target->pid);
	unwinder_init(&ticker->unwinder, &ticker->space, setup->profile, setup->rules,
	              setup->max_frames);
	if (ticker->run->check)
		unwinder_record_pcs(&ticker->unwinder);
	return true;
}

void ticker_deinit(struct ticker *ticker)
{
	unwinder_deinit(&ticker->unwinder);
	address_space_deinit(&ticker->space);
	snapshot_buffer_deinit(&ticker->buffer);
	free(ticker->stops);
	if (ticker->own_schedstat_fd >= 0)
		close(ticker->own_schedstat_fd);
	*ticker = (struct ticker){0};
}

// Counts one sample, and the ticks for which the thread was pending.
static void count(struct ticker *ticker, struct target_thread *thread, uint32_t stack,
                  enum thread_state state, int64_t tick_ns)
{
	const uint64_t ticks = 1 + thread->pending_ticks;

	thread->pending_ticks = 0;
	thread->sample = profile_count(ticker->profile, thread->id, stack, state, ticks, tick_ns);
	ticker->run->samples += ticks;
}

static void count_not_sampled(struct ticker *ticker, struct target_thread *thread,
                              enum thread_state state, int64_t tick_ns)
{
	thread->asleep = false;
	count(ticker, thread, profile_intern_stack(ticker->profile, NULL, 0, STACK_NOT_SAMPLED),
	      state, tick_ns);
}

// Asleep on: the same sample once more.
static void count_again(struct ticker *ticker, struct target_thread *thread)
{
	profile_count_again(ticker->profile, thread->sample, 1, ticker->now_ns);
	ticker->run->samples++;
	ticker->run->credits++;
}

// In the same system call still, for certain: the same stack.
static void count_as_before(struct ticker *ticker, struct target_thread *thread,
                            enum thread_state state)
{
	const uint32_t stack = ticker->profile->samples[thread->sample].stack;

	count(ticker, thread, stack, state, ticker->now_ns);
}

static void update_hint(struct snapshot_hint *hint, const struct snapshot *snapshot,
                        const struct unwound *unwound)
{
	const uint64_t sp = snapshot->registers.value[ARCH_NATIVE->sp];

	if (unwound->end == STACK_NOT_COPIED) {
		const size_t last =
		    hint->guess_bytes ? hint->guess_bytes : (size_t)SNAPSHOT_UNKNOWN_STACK_BYTES;
		if (last < SNAPSHOT_MAX_STACK_BYTES)
			hint->guess_bytes = last * 2;
	}
	if (unwound->end == STACK_UNREADABLE)
		hint->base = 0; // a wrong one may have cut the copy
	if (unwound->base <= sp || snapshot->n_regions > 1)
		return;
	hint->base = unwound->base;
	if (unwound->base - sp > hint->depth)
		hint->depth = unwound->base - sp;
}

static void unwind(struct ticker *ticker, struct target_thread *thread,
                   const struct snapshot *snapshot, struct unwound *ret)
{
	const uint32_t generation = ticker->space.generation;

	unwinder_unwind(&ticker->unwinder, snapshot, ret);
	if (ticker->space.stale) {
		// An address in no mapping: perhaps one that has come since.
		address_space_update(&ticker->space, thread->tid, clock_now_ns(), false);
		if (ticker->space.generation != generation)
			unwinder_unwind(&ticker->unwinder, snapshot, ret);
	}
	if (ticker->run->check)
		unwind_check_compare(ticker->run->check, thread->tid, &ticker->unwinder, snapshot,
		                     ret);
	update_hint(&thread->hint, snapshot, ret);
}

static uint32_t intern(struct ticker *ticker, const struct unwound *unwound)
{
	return profile_intern_stack(ticker->profile, unwound->locations, unwound->n, unwound->end);
}

static void plan_stop(struct ticker *ticker, struct target_thread *thread, enum thread_state state,
                      bool asleep)
{
	*array_push(ticker->stops, ticker->n_stops, ticker->stops_capacity) = (struct tick_stop){
	    .thread = thread,
	    .state = state,
	    .asleep = asleep,
	    .tick_ns = ticker->now_ns,
	};
}

// The copy of a sleeping thread: unwound at once, since nobody is held.
static void take_sleeper(struct ticker *ticker, struct target_thread *thread,
                         struct snapshot *snapshot, enum thread_state state)
{
	const size_t used = snapshot->regions[0].bytes - ticker->buffer.bytes;
	struct unwound unwound;

	ticker->run->copies++;
	unwind(ticker, thread, snapshot, &unwound);
	for (int i = 0; unwound.end == STACK_NOT_COPIED && i < MAX_COPY_TRIES; i++) {
		ticker->buffer.used = used;
		if (!sleeper_copy_again(ticker->target, thread, &ticker->space.maps,
		                        &ticker->buffer, snapshot)) {
			plan_stop(ticker, thread, THREAD_RUNNING, false);
			return;
		}
		unwind(ticker, thread, snapshot, &unwound);
	}
	if (ticker->held_at_exec)
		state = THREAD_RUNNING; // it is about to, and only the profiler holds it
	if (unwound.end == STACK_NEEDS_REGISTER && !ticker->held_at_exec) {
		plan_stop(ticker, thread, state, true);
		return;
	}
	count(ticker, thread, intern(ticker, &unwound), state, ticker->now_ns);
	thread->asleep = !ticker->held_at_exec;
}

static void refresh_name(struct ticker *ticker, struct target_thread *thread)
{
	const struct thread *entry = &ticker->profile->threads[thread->id];
	int64_t interval_ns = thread->named_ns - entry->first_ns;
	char name[PROC_NAME_SIZE];

	if (interval_ns < FIRST_NAME_NS)
		interval_ns = FIRST_NAME_NS;
	if (interval_ns > MAX_NAME_AGE_NS)
		interval_ns = MAX_NAME_AGE_NS;
	if (ticker->now_ns - thread->named_ns < interval_ns)
		return;
	thread->named_ns = ticker->now_ns;
	if (proc_read_name(ticker->target->pid, thread->tid, name))
		profile_rename_thread(ticker->profile, thread->id, name);
}

static void look(struct ticker *ticker, struct target_thread *thread)
{
	const size_t used = ticker->buffer.used; // sleepers need it one at a time
	struct snapshot snapshot;
	enum thread_state state;

	if (thread->asked_ns == ticker->now_ns)
		return; // --stop-all: running, and asked first
	if (thread->pending) {
		thread->pending_ticks++;
		return;
	}
	switch (sleeper_look(ticker->target, thread, &ticker->space.maps, &ticker->buffer,
	                     &snapshot, &state)) {
	case SLEEPER_UNCHANGED:
		count_again(ticker, thread);
		return;
	case SLEEPER_GONE:
		thread->gone = true;
		return;
	case SLEEPER_COPIED:
		take_sleeper(ticker, thread, &snapshot, state);
		break;
	case SLEEPER_RUNS:
		thread->asleep = false;
		if (tracee_is_in_rest(thread->tid)) {
			count_as_before(ticker, thread, state);
			break;
		}
		ticker->run->blind |= state != THREAD_RUNNING;
		plan_stop(ticker, thread, state, false);
		break;
	}
	ticker->buffer.used = used;
	refresh_name(ticker, thread);
}

// Asks all planned stops at once; each will be copied and let go as it arrives.
static void ask_to_stop(struct ticker *ticker, size_t from)
{
	for (size_t i = from; i < ticker->n_stops; i++) {
		struct tick_stop *stop = &ticker->stops[i];
		struct target_thread *thread = stop->thread;
		enum tracee_result result = tracee_seize(thread->tid, false);
		stop->free_ns = clock_now_ns();
		thread->asked_ns = ticker->now_ns;
		if (result == TRACEE_OK)
			result = tracee_interrupt(thread->tid);
		thread->pending = result == TRACEE_OK;
		thread->gone |= result == TRACEE_GONE;
		if (result == TRACEE_DENIED) {
			ticker->run->denied++;
			count_not_sampled(ticker, thread, stop->state, ticker->now_ns);
		}
	}
}

static void note_hold(struct ticker *ticker, int64_t start_ns, int64_t end_ns)
{
	struct run *run = ticker->run;

	run->stops++;
	histogram_add(&run->thread_hold, end_ns - start_ns);
	// The union of all holds: they end one after the other.
	if (start_ns < ticker->release_ns)
		start_ns = ticker->release_ns;
	run->held_ns += end_ns - start_ns;
	ticker->release_ns = end_ns;
}

static void let_go(struct ticker *ticker, struct tick_stop *stop)
{
	struct target_thread *thread = stop->thread;

	tracee_release(thread->tid, &stop->how);
	note_hold(ticker, stop->free_ns, clock_now_ns());
	thread->pending = false;
	// The stop woke it for a moment: scheduled once to stop and once to go back to sleep.
	thread->asleep = stop->asleep && (stop->how.interrupted || stop->how.group_stop);
	thread->sleep_runs += 2;
}

// A thread that stands still: registers, stack, and off it goes.
static void copy_stopped(struct ticker *ticker, struct tick_stop *stop)
{
	struct target_thread *thread = stop->thread;
	struct registers registers;

	if (!tracee_registers(thread->tid, &stop->how, &registers, &thread->hint.tls) ||
	    !snapshot_capture(thread->tid, ARCH_NATIVE, &registers, &ticker->space.maps,
	                      &thread->hint, &ticker->buffer, &stop->snapshot))
		stop->failed = true;
	stop->copied = true;
	if (!ticker->stop_all)
		let_go(ticker, stop);
}

// Polls all that were asked; returns how many have not stopped yet.
static size_t poll_stops(struct ticker *ticker)
{
	size_t missing = 0;

	for (size_t i = 0; i < ticker->n_stops; i++) {
		struct tick_stop *stop = &ticker->stops[i];
		if (!stop->thread->pending || stop->copied)
			continue;
		if (!snapshot_buffer_has_room(&ticker->buffer))
			return missing + 1;
		const int64_t polled_ns = clock_now_ns();
		switch (tracee_poll(stop->thread->tid, &stop->how)) {
		case TRACEE_STOPPED:
			if (stop->free_ns < ticker->quiet_ns)
				stop->free_ns = ticker->quiet_ns;
			copy_stopped(ticker, stop);
			break;
		case TRACEE_EXITED:
			stop->thread->pending = false;
			stop->thread->gone = true;
			break;
		case TRACEE_RUNS:
			stop->free_ns = polled_ns;
			missing++;
			break;
		}
	}
	return missing;
}

// --stop-all: together, after all have been copied.
static void let_all_go(struct ticker *ticker)
{
	for (size_t i = 0; i < ticker->n_stops; i++)
		if (ticker->stops[i].thread->pending && ticker->stops[i].copied)
			let_go(ticker, &ticker->stops[i]);
}

// Unwinds and counts what has arrived, and strikes it off.
static void count_stops(struct ticker *ticker)
{
	size_t kept = 0;

	for (size_t i = 0; i < ticker->n_stops; i++) {
		struct tick_stop *stop = &ticker->stops[i];
		struct unwound unwound;
		if (stop->thread->pending) {
			ticker->stops[kept++] = *stop;
			continue;
		}
		if (!stop->copied) {
			// Gone, or denied. What earlier ticks saw of it is not dropped.
			if (stop->thread->pending_ticks > 0)
				count_not_sampled(ticker, stop->thread, stop->state, stop->tick_ns);
			continue;
		}
		if (stop->failed) {
			count_not_sampled(ticker, stop->thread, stop->state, stop->tick_ns);
			continue;
		}
		unwind(ticker, stop->thread, &stop->snapshot, &unwound);
		count(ticker, stop->thread, intern(ticker, &unwound), stop->state, stop->tick_ns);
	}
	ticker->n_stops = kept;
	snapshot_buffer_reset(&ticker->buffer);
}

// How long the sampler itself has waited for a CPU, once it was ready to run; -1: unknown.
static int64_t own_delay(const struct ticker *ticker)
{
	struct proc_schedstat own;

	if (ticker->own_schedstat_fd < 0 ||
	    !proc_read_schedstat(ticker->own_schedstat_fd, 0, 0, &own))
		return -1;
	return (int64_t)own.delay_ns;
}

// Waits for an event, with every stop polled before. When the wait lasted, then nobody stopped
// before its end: the first stop's SIGCHLD ended it, after the time that the sampler waited for a
// CPU of its own. So a thread that was slow to stop, for want of a CPU, does not count as held.
static void wait_for_event(struct ticker *ticker, int64_t until_ns)
{
	const int64_t start_ns = clock_now_ns();

	events_wait(ticker->events, until_ns);
	const int64_t end_ns = clock_now_ns();
	if (end_ns - start_ns < LONG_WAIT_NS)
		return;
	// The delay since it was last read, at the least: counting too much is on the safe side.
	const int64_t delay_ns = own_delay(ticker), delayed_ns = delay_ns - ticker->own_delay_ns;
	if (delay_ns >= 0 && end_ns - start_ns > delayed_ns + 2 * WAKE_SLACK_NS)
		ticker->quiet_ns = end_ns - delayed_ns - WAKE_SLACK_NS;
	ticker->own_delay_ns = delay_ns;
}

static void wait_for_stops(struct ticker *ticker, int64_t until_ns)
{
	while (poll_stops(ticker) > 0 && clock_now_ns() < until_ns) {
		if (snapshot_buffer_has_room(&ticker->buffer)) {
			wait_for_event(ticker, until_ns);
			tracee_serve();
		} else {
			let_all_go(ticker); // no room: better than to hold them for long
			count_stops(ticker);
		}
	}
}

void ticker_wait(struct ticker *ticker, int64_t deadline_ns)
{
	if (ticker->n_stops == 0) {
		events_wait(ticker->events, deadline_ns);
		tracee_serve();
		return;
	}
	wait_for_event(ticker, deadline_ns);
	tracee_serve();
	poll_stops(ticker);
	let_all_go(ticker);
	count_stops(ticker);
}

// Stops the threads that are planned from `from` on, and copies them.
static void stop_planned(struct ticker *ticker, size_t from)
{
	if (ticker->n_stops == 0)
		return;
	ask_to_stop(ticker, from);
	wait_for_stops(ticker, clock_now_ns() + (ticker->stop_all ? MAX_WAIT_ALL_NS : MAX_WAIT_NS));
}

static void finish_stops(struct ticker *ticker)
{
	let_all_go(ticker);
	count_stops(ticker);
	// Those that did not stop in time stand for every tick until they do.
	for (size_t i = 0; i < ticker->n_stops; i++)
		ticker->stops[i].tick_ns = ticker->now_ns;
}

// --stop-all: first all that run, so that nothing moves while the sleepers are looked at.
static void stop_runners_first(struct ticker *ticker)
{
	const size_t from = ticker->n_stops;

	for (size_t i = 0; i < ticker->target->n_threads; i++) {
		struct target_thread *thread = ticker->target->threads[i];
		if (!thread->pending && sleeper_runs(ticker->target, thread)) {
			thread->asleep = false;
			plan_stop(ticker, thread, THREAD_RUNNING, false);
		}
	}
	stop_planned(ticker, from);
}

static void add_new_threads(struct ticker *ticker, size_t n_new)
{
	struct target *target = ticker->target;

	for (size_t i = target->n_threads - n_new; i < target->n_threads; i++) {
		struct target_thread *thread = target->threads[i];
		char name[PROC_NAME_SIZE];
		if (!proc_read_name(target->pid, thread->tid, name))
			name[0] = '\0';
		thread->id = profile_add_thread(ticker->profile, target->pid, thread->tid, name,
		                                ticker->now_ns);
		thread->named_ns = ticker->now_ns;
	}
}

static void note_kernel_figures(struct ticker *ticker, const struct target_thread *thread)
{
	struct thread *entry = &ticker->profile->threads[thread->id];

	if (!thread->has_schedstat)
		return;
	entry->kernel_cpu_ns = thread->last.cpu_ns - thread->first.cpu_ns;
	entry->kernel_delay_ns = thread->last.delay_ns - thread->first.delay_ns;
}

// The target's CPU clock stands still: none of its threads has run (clock_getcpuclockid(3)).
static bool is_idle(struct ticker *ticker)
{
	const clockid_t clock =
	    (clockid_t)(~(unsigned int)ticker->target->pid << 3 | 2); // CPUCLOCK_SCHED
	const int64_t cpu_ns = clock_read_ns(clock);
	const bool idle = ticker->all_asleep && cpu_ns >= 0 && cpu_ns == ticker->cpu_clock_ns;

	ticker->cpu_clock_ns = cpu_ns;
	return idle;
}

static void look_at_all(struct ticker *ticker)
{
	struct target *target = ticker->target;
	bool all_asleep = true, some_gone = false;

	for (size_t i = 0; i < target->n_threads; i++) {
		struct target_thread *thread = target->threads[i];
		look(ticker, thread);
		note_kernel_figures(ticker, thread);
		all_asleep &= thread->asleep;
		some_gone |= thread->gone;
	}
	ticker->all_asleep = all_asleep;
	if (some_gone) // one may have been born for each that went: the number does not tell
		target->n_links = 0;
}

// For how long the last tick held somebody, those included that stopped after it.
static void settle_tick_hold(struct ticker *ticker)
{
	struct run *run = ticker->run;

	if (run->held_ns != ticker->settled_held_ns)
		histogram_add(&run->tick_hold, run->held_ns - ticker->settled_held_ns);
	ticker->settled_held_ns = run->held_ns;
}

bool ticker_tick(struct ticker *ticker, int64_t now_ns)
{
	struct target *target = ticker->target;
	const bool first = ticker->run->ticks == 0;

	settle_tick_hold(ticker);
	ticker->now_ns = now_ns;
	ticker->run->ticks++;
	ticker->run->last_ns = now_ns;
	if (is_idle(ticker)) {
		for (size_t i = 0; i < target->n_threads; i++)
			count_again(ticker, target->threads[i]);
		return true;
	}
	const size_t n_new = target_list_threads(target, false);
	add_new_threads(ticker, first ? target->n_threads : n_new);
	address_space_update(&ticker->space, target_live_tid(target), now_ns, first);
	if (ticker->stop_all)
		stop_runners_first(ticker);
	const size_t n_asked = ticker->n_stops;
	look_at_all(ticker);
	stop_planned(ticker, n_asked);
	finish_stops(ticker);
	target_forget_gone(target);
	ticker->run->threads = target->n_threads;
	return target->n_threads > 0;
}

void ticker_finish(struct ticker *ticker)
{
	const int64_t until_ns = clock_now_ns() + LAST_WAIT_NS;

	wait_for_stops(ticker, until_ns);
	let_all_go(ticker);
	count_stops(ticker);
	for (size_t i = 0; i < ticker->n_stops; i++) {
		const struct tick_stop *stop = &ticker->stops[i];
		count_not_sampled(ticker, stop->thread, stop->state, stop->tick_ns);
	}
	ticker->n_stops = 0;
	settle_tick_hold(ticker);
	while (tracee_serve() > 0 && clock_now_ns() < until_ns)
		events_wait(ticker->events, until_ns);
	tracee_abandon_all();
}
