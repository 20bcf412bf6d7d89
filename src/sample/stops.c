// SPDX-License-Identifier: MIT
#include "stops.h"

#include <stdlib.h>

#include "clock.h"
#include "held_time.h"
#include "holding.h"
#include "memory.h"
#include "runtimes.h"
#include "sleeper.h"
#include "target.h"

enum {
	MAX_POLL_NS = 40000,
	LONG_RELEASE_NS = 20000,
	MAX_LOOKS = 4, // at threads that do not stop
	// Stops; of more, the last ones come too late for what was found before, or read.
	MAX_AHEAD = 16,
	MAX_READ_AHEAD = 4,
	COLD_NS = 2000000,           // after that the kernel's code for a copy is not in the caches
	MANY_THREADS = 256,          // a look at them all leaves nothing else there
	DEEP_STACK_BYTES = 32 << 10, // takes longer to fetch from another CPU than to copy
};

void stops_init(struct stops *stops, struct held_time *hold, struct snapshot_buffer *buffer,
                const struct target *target, bool hold_all)
{
	*stops = (struct stops){
	    .hold = hold,
	    .buffer = buffer,
	    .target = target,
	    .hold_all = hold_all,
	};
}

void stops_deinit(struct stops *stops)
{
	free(stops->items);
	*stops = (struct stops){0};
}

void stops_plan(struct stops *stops, struct target_thread *thread, enum thread_state state,
                bool asleep, int64_t tick_ns)
{
	*array_push(stops->items, stops->count, stops->capacity) = (struct stop){
	    .thread = thread,
	    .state = state,
	    .asleep = asleep,
	    .tick_ns = tick_ns,
	    .due_ns = stops->due_ns,
	    .asked = thread->last,
	    .first = thread->first_ns == tick_ns ? thread->first : thread->last,
	};
}

// Looks at the last moment before the thread is asked: the shorter the time between, the less often
// a call is disturbed.
static bool has_fallen_asleep(const struct stops *stops, const struct stop *stop)
{
	return stop->asleep ? sleeper_has_moved(stops->target, stop->thread)
	                    : sleeper_is_blocked(stops->target, stop->thread);
}

// Nobody can seize a thread of a process that is in exec, and such a process may have no CPU: those
// who were asked before, in other processes, may stop meanwhile. Only the first of a series waits
// for long: copying those as they stop would put off the others' stops, and disturb more calls.
static enum tracee_result seize(struct stops *stops, const struct target_thread *thread,
                                bool is_first)
{
	const bool begun = is_first && held_time_begin_seizing(stops->hold);
	const enum tracee_result result = tracee_seize(thread->tid, stops->target->pid);

	held_time_end_work(stops->hold, begun);
	return result;
}

// Leaves a thread alone that is about to end.
static void note_exit(struct stop *stop)
{
	stop->thread->stop.asked_ns = stop->tick_ns;
	stop->exits = stop->over = true;
}

static void ask(struct stops *stops, struct stop *stop, bool is_first)
{
	struct target_thread *thread = stop->thread;
	const enum tracee_result result = seize(stops, thread, is_first);

	stop->free_ns = clock_now_ns();
	thread->picture.size = 0;
	thread->stop.asked_ns = stop->tick_ns;
	thread->stop.pending = result == TRACEE_OK;
	thread->gone |= result == TRACEE_GONE;
	stop->denied = result == TRACEE_DENIED;
	stop->over = !thread->stop.pending;
	// A thread that has ended since is pending too: it is still to be reaped.
	if (thread->stop.pending)
		tracee_interrupt(thread->tid);
}

static bool is_worth_rehearsing(const struct stops *stops, const struct target_thread *thread,
                                bool is_cold)
{
	return thread->hint.stopped_sp != 0 &&
	       (is_cold || stops->target->n_threads > MANY_THREADS ||
	        thread->hint.stopped_bytes > DEEP_STACK_BYTES);
}

// Does what can be done before anybody is held.
static void prepare(struct stops *stops, const struct maps *maps, size_t from)
{
	const bool is_anyone_held = tracee_has_any();
	const bool is_cold = clock_now_ns() - stops->hold->release_ns > COLD_NS;

	held_time_prepare(stops->hold);
	tracee_prepare();
	for (size_t i = from; i < stops->count && i - from < MAX_AHEAD; i++) {
		struct target_thread *thread = stops->items[i].thread;
		// Not of a sleeper: the sooner it is stopped, the less often it has woken by then.
		const bool reads =
		    !is_anyone_held && i - from < MAX_READ_AHEAD && !stops->items[i].asleep;
		if (i == from)
			resident_await(thread->hint.resident, thread->tid);
		if (reads && is_worth_rehearsing(stops, thread, is_cold && i == from)) {
			snapshot_rehearse(thread->tid, ARCH_NATIVE, maps, &thread->hint,
			                  stops->buffer);
			sleeper_figures(stops->target,
			                thread); // sleeper_note_stop reads them again
		}
		if (stops->target->runtimes)
			runtimes_look_ahead(stops->target->runtimes, thread->tid,
			                    reads ? stops->buffer : NULL);
	}
}

size_t stops_ask(struct stops *stops, const struct maps *maps, size_t from, bool spares)
{
	size_t kept = from;
	bool is_first = true;

	prepare(stops, maps, from);
	for (size_t i = from; i < stops->count; i++) {
		struct stop *stop = &stops->items[i];
		struct target_thread *thread = stop->thread;
		thread->stop.asked_state = stop->state;
		// First, since it takes longer, and threads fall asleep more often than they end.
		const bool exits = sleeper_exits(stops->target, thread);
		thread->stop.slept_before_stop = spares && has_fallen_asleep(stops, stop);
		if (thread->stop.slept_before_stop)
			continue;
		if (exits) {
			note_exit(stop);
		} else {
			ask(stops, stop, is_first);
			is_first = false;
		}
		stops->items[kept++] = *stop;
	}
	const size_t n_spared = stops->count - kept;
	stops->count = kept;
	return n_spared;
}

// Returns the last moment at which the thread may have been let go, by a call from before_ns to
// now. As it wakes it may take the sampler's CPU, so that the call returns when it has run: what
// the kernel has counted of it since its stop came after its release.
static int64_t find_release(const struct stops *stops, const struct stop *stop, int64_t before_ns)
{
	const int64_t now_ns = clock_now_ns();

	if (now_ns - before_ns < LONG_RELEASE_NS || stop->stopped.runs == 0)
		return now_ns;
	const struct proc_schedstat now = sleeper_figures(stops->target, stop->thread);
	if (now.cpu_ns < stop->stopped.cpu_ns || now.delay_ns < stop->stopped.delay_ns)
		return now_ns;
	const uint64_t since_ns =
	    now.cpu_ns - stop->stopped.cpu_ns + now.delay_ns - stop->stopped.delay_ns;
	return since_ns < (uint64_t)(now_ns - before_ns) ? now_ns - (int64_t)since_ns : before_ns;
}

static void let_go(struct stops *stops, struct stop *stop)
{
	struct target_thread *thread = stop->thread;
	const int64_t before_ns = clock_now_ns();

	tracee_release(thread->tid, &stop->how);
	stop->released_ns = find_release(stops, stop, before_ns);
	held_time_add(stops->hold, stop->free_ns, stop->released_ns);
	thread->stop.pending = false;
	stop->over = true;
	sleep_note_release(&thread->sleep, stop->asleep, &stop->how);
}

// Copies a stopped thread's registers and stack, and lets it go.
static void copy_stopped(struct stops *stops, struct stop *stop, const struct maps *maps)
{
	struct target_thread *thread = stop->thread;
	struct registers registers;
	const bool was_calm = resident_set_calm(thread->hint.resident, false);

	if (!tracee_registers(thread->tid, &stop->how, &registers, &thread->hint.tls) ||
	    !snapshot_buffer_has_room(stops->buffer) ||
	    !snapshot_capture(thread->tid, ARCH_NATIVE, &registers, maps, &thread->hint,
	                      stops->buffer, &stop->snapshot))
		stop->failed = true;
	else if (stops->target->runtimes)
		runtimes_read(stops->target->runtimes, thread->tid, stops->buffer, &stop->snapshot);
	stop->stopped = sleeper_note_stop(stops->target, thread);
	if (!stop->failed)
		snapshot_hint_stopped(&thread->hint, &stop->snapshot);
	resident_set_calm(thread->hint.resident, was_calm);
	stop->copied = true;
	stops->buffer->n_wanted++;
	stops->hold->holding = stops->hold_all;
	if (!stops->hold_all)
		let_go(stops, stop);
}

static size_t count_since(const struct stops *stops, int64_t since_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < stops->count; i++)
		n += stops->items[i].tick_ns >= since_ns;
	return n;
}

size_t stops_poll(struct stops *stops, const struct maps *maps, int64_t since_ns)
{
	size_t missing = 0;

	for (size_t i = 0; i < stops->count; i++) {
		struct stop *stop = &stops->items[i];
		if (stop->over || stop->copied || !stop->thread->stop.pending)
			continue;
		if (!snapshot_buffer_has_room(stops->buffer) && !stops->hold->between_ticks) {
			stops->hold->no_room = true;
			return missing + 1;
		}
		const int64_t polled_ns = clock_now_ns();
		switch (tracee_poll(stop->thread->tid, &stop->how)) {
		case TRACEE_STOPPED:
			stop->found_ns = polled_ns;
			holding_begin();
			copy_stopped(stops, stop, maps);
			holding_end();
			break;
		case TRACEE_EXITED:
			stop->thread->stop.pending = false;
			stop->thread->gone = true;
			stop->over = true;
			break;
		case TRACEE_RUNS:
			stop->free_ns = polled_ns;
			missing += stop->tick_ns >= since_ns;
			break;
		}
	}
	return missing;
}

// True while polling is better than sleeping: a thread that another CPU runs stops within some 10
// us, less than it takes to sleep and be woken. A thread without a CPU cannot stop while this one
// is taken.
static bool is_worth_polling(size_t n_stopped, long n_cpus, int64_t start_ns)
{
	return n_stopped + 1 < (size_t)n_cpus && clock_now_ns() - start_ns < MAX_POLL_NS;
}

// True if one of the first that are missing has begun to end since it was asked. Who polls reaps it
// at once; who sleeps may be woken later than its parent, which cannot wait for it before, though
// its pidfd tells of its end.
static bool is_one_ending(const struct stops *stops, long n_cpus, int64_t since_ns)
{
	size_t n_looks = 0;

	for (size_t i = 0; n_cpus > 1 && i < stops->count && n_looks < MAX_LOOKS; i++) {
		const struct stop *stop = &stops->items[i];
		if (stop->over || stop->copied || stop->tick_ns < since_ns)
			continue;
		n_looks++;
		if (sleeper_exits(stops->target, stop->thread))
			return true;
	}
	return false;
}

bool stops_wait(struct stops *stops, const struct maps *maps, long n_cpus, int64_t since_ns,
                int64_t until_ns)
{
	const int64_t start_ns = clock_now_ns();
	const size_t n_asked = count_since(stops, since_ns);
	size_t n_missing;

	while ((n_missing = stops_poll(stops, maps, since_ns)) > 0 && clock_now_ns() < until_ns) {
		if (!snapshot_buffer_has_room(stops->buffer))
			return false;
		if (n_missing > n_asked ||
		    (!is_worth_polling(n_asked - n_missing, n_cpus, start_ns) &&
		     !is_one_ending(stops, n_cpus, since_ns)))
			held_time_wait(stops->hold, until_ns);
	}
	return true;
}

void stops_let_all_go(struct stops *stops)
{
	stops->hold->holding = false;
	for (size_t i = 0; i < stops->count; i++)
		if (!stops->items[i].over && stops->items[i].copied)
			let_go(stops, &stops->items[i]);
}

void stops_note_counted(struct stops *stops, struct stop *stop)
{
	stop->counted = true;
	stops->buffer->n_wanted -= stop->copied;
}

void stops_strike_off(struct stops *stops)
{
	size_t kept = 0;

	for (size_t i = 0; i < stops->count; i++)
		if (!stops->items[i].counted)
			stops->items[kept++] = stops->items[i];
	stops->count = kept;
	snapshot_buffer_reset(stops->buffer);
}
