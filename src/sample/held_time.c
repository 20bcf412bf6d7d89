// SPDX-License-Identifier: MIT
#include "held_time.h"

#include <fcntl.h>
#include <unistd.h>

#include "clock.h"
#include "events.h"
#include "listening.h"
#include "order.h"
#include "proc.h"
#include "run_stats.h"
#include "tracee.h"

enum {
	LONG_WAIT_NS = 100000, // for a stop: longer than a hold should last
	WAKE_SLACK_NS = 20000, // from a stop to the moment when the sampler is ready to run
	SHORT_WORK_NS = 2 * WAKE_SLACK_NS, // noting shorter work would tell next to nothing
};

void held_time_init(struct held_time *hold, struct run_stats *stats, struct events *events)
{
	*hold = (struct held_time){
	    .stats = stats,
	    .events = events,
	    .own_schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC),
	};
}

void held_time_deinit(struct held_time *hold)
{
	if (hold->own_schedstat_fd >= 0)
		close(hold->own_schedstat_fd);
}

// Returns how long the sampler itself has waited for a CPU while it was ready to run; -1: unknown.
static int64_t own_delay(const struct held_time *hold)
{
	struct proc_schedstat own;

	if (hold->own_schedstat_fd < 0 || !proc_read_schedstat(hold->own_schedstat_fd, 0, 0, &own))
		return -1;
	return (int64_t)own.delay_ns;
}

// Returns how long the sampler waited for a CPU during a hold of that length: since the hold began,
// or since the delay was last read before it.
static int64_t waiting_in(struct held_time *hold, int64_t start_ns, int64_t hold_ns)
{
	if (hold_ns < LONG_WAIT_NS)
		return 0;
	const int64_t delay_ns = own_delay(hold);
	const int64_t last_ns =
	    start_ns == hold->quiet_ns ? hold->quiet_delay_ns : hold->own_delay_ns;
	hold->own_delay_ns = delay_ns;
	if (last_ns < 0 || delay_ns < 0)
		return 0;
	return delay_ns - last_ns < hold_ns ? delay_ns - last_ns : hold_ns;
}

void held_time_add(struct held_time *hold, int64_t start_ns, int64_t end_ns)
{
	struct run_stats *stats = hold->stats;

	if (start_ns < hold->quiet_ns)
		start_ns = hold->quiet_ns;
	stats->stops++;
	histogram_add(&stats->thread_hold, end_ns - start_ns);
	// The union of all holds: they end one after another.
	if (start_ns < hold->release_ns)
		start_ns = hold->release_ns;
	stats->held_ns += end_ns - start_ns;
	stats->held_waiting_ns += waiting_in(hold, start_ns, end_ns - start_ns);
	hold->release_ns = end_ns;
}

void held_time_prepare(struct held_time *hold)
{
	if (!tracee_has_any())
		hold->own_delay_ns = own_delay(hold);
}

// Notes that the sampler would have noticed a stop by now_ns, except in the last deaf_ns.
static void note_quiet(struct held_time *hold, int64_t now_ns, int64_t deaf_ns)
{
	const int64_t quiet_ns = now_ns - deaf_ns - WAKE_SLACK_NS;

	if (quiet_ns <= hold->quiet_ns || hold->no_room)
		return;
	hold->quiet_ns = quiet_ns;
	hold->quiet_delay_ns = hold->own_delay_ns;
}

// Takes it that nobody stopped before the end of a long wait: the first stop's SIGCHLD would have
// ended it. Subtracts what the sampler itself waited for a CPU after that. So a thread that was
// slow to stop, because it had no CPU, does not count as held.
static void note_wait(struct held_time *hold, int64_t start_ns, int64_t end_ns)
{
	if (end_ns - start_ns < LONG_WAIT_NS)
		return;
	// This is at least the delay since it was last read: counting too much is on the safe side.
	const int64_t delay_ns = own_delay(hold), delayed_ns = delay_ns - hold->own_delay_ns;
	if (!hold->holding && delay_ns >= 0 && end_ns - start_ns > delayed_ns + 2 * WAKE_SLACK_NS)
		note_quiet(hold, end_ns, delayed_ns);
	hold->own_delay_ns = delay_ns;
}

void held_time_note_none(struct held_time *hold, int64_t looked_ns)
{
	if (looked_ns - hold->quiet_ns < LONG_WAIT_NS)
		return;
	hold->quiet_ns = looked_ns;
	hold->own_delay_ns = hold->quiet_delay_ns = own_delay(hold);
}

void held_time_wait(struct held_time *hold, int64_t until_ns)
{
	const int64_t start_ns = clock_now_ns();

	if (tracee_take_unserved())
		events_note_served(hold->events);
	events_wait(hold->events, until_ns);
	tracee_stop_let_strays_go(tracee_is_seized);
	if (!tracee_has_any())
		return;
	note_wait(hold, start_ns, clock_now_ns());
	tracee_serve();
}

// Begins a stretch of work. What the sampler had waited by then is read anew only if that is older
// than a hold should last: with an older figure less is taken to be quiet, never more.
static void mark_work(struct held_time *hold)
{
	hold->work_ns = clock_now_ns();
	hold->work_cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	hold->work_listened_ns = listening_waited_ns();
	if (hold->work_ns - hold->own_delay_read_ns < LONG_WAIT_NS)
		return;
	hold->own_delay_ns = own_delay(hold);
	hold->own_delay_read_ns = hold->work_ns;
}

// Notes the work done so far. The signal of a stop interrupts the sampler at once while it computes
// or waits for a file to be opened, for a reader, or for a thread to be seized. It may not while
// the sampler waits for a disk, for another lock in the kernel, or for a CPU: nobody has been held
// for longer than it has done so since the work began.
static void note_work(struct held_time *hold, int64_t now_ns)
{
	const int64_t delay_ns = own_delay(hold), delayed_ns = delay_ns - hold->own_delay_ns;
	const int64_t on_cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - hold->work_cpu_ns;
	const int64_t listened_ns = listening_waited_ns() - hold->work_listened_ns;
	const int64_t off_cpu_ns = now_ns - hold->work_ns - on_cpu_ns;
	const int64_t deaf_ns = hold->seizes ? 0 : off_cpu_ns - listened_ns;

	// After it has listened, too, it may wait for a CPU.
	if (delay_ns >= 0 && hold->own_delay_ns >= 0)
		note_quiet(hold, now_ns, order_max_ns(deaf_ns, delayed_ns));
	hold->own_delay_ns = delay_ns;
	hold->own_delay_read_ns = now_ns;
}

static void serve_at_once(void *context)
{
	struct held_time *hold = context;
	const bool works = hold->work_ns != 0; // if not, they stopped before

	if (works)
		note_work(hold, clock_now_ns());
	hold->serves = true;
	hold->server.serve(hold->server.context);
	hold->serves = false;
	events_note_served(hold->events);
	if (works)
		mark_work(hold);
}

static bool begin_work(struct held_time *hold, bool seizes)
{
	if (hold->works || !hold->server.serve || !tracee_has_any())
		return false;
	hold->works = true;
	hold->seizes = seizes;
	hold->work_ns = 0;
	tracee_serve_at_once(serve_at_once, hold, seizes);
	mark_work(hold);
	return true;
}

bool held_time_begin_work(struct held_time *hold)
{
	return begin_work(hold, false);
}

bool held_time_begin_seizing(struct held_time *hold)
{
	return begin_work(hold, true);
}

void held_time_end_work(struct held_time *hold, bool begun)
{
	if (!begun)
		return;
	const int64_t now_ns = clock_now_ns();

	if (now_ns - hold->work_ns > SHORT_WORK_NS)
		note_work(hold, now_ns);
	tracee_serve_in_turn();
	hold->works = false;
}

void held_time_settle_tick(struct held_time *hold)
{
	struct run_stats *stats = hold->stats;

	if (stats->held_ns != hold->settled_ns)
		histogram_add(&stats->tick_hold, stats->held_ns - hold->settled_ns);
	hold->settled_ns = stats->held_ns;
}
