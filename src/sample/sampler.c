// SPDX-License-Identifier: MIT
#include "sampler.h"

#include <sys/random.h>
#include <unistd.h>

#include "budget.h"
#include "clock.h"
#include "error.h"
#include "events.h"
#include "hash.h"
#include "holding.h"
#include "launch.h"
#include "priority.h"
#include "privileged_exec.h"
#include "processes.h"
#include "profile.h"
#include "run_stats.h"
#include "schedule.h"
#include "share_doubts.h"

// The sampler's CPU clock is read only when it has been busy for so long since, or has taken so
// many ticks: most take much less, and the budget's loan much more. When less than that is left of
// the budget, it is read after each tick.
enum { MAX_UNREAD_NS = 1000000, MAX_UNREAD_TICKS = 16 };

// Between the moment in which the sampler gets its CPU and that in which it knows the time.
enum { SWITCH_NS = 50000 };

// Waits for the deadline, and serves threads that stop late meanwhile. False if the run is over.
static bool wait_until(const struct sampler *sampler, struct processes *processes,
                       int64_t deadline_ns)
{
	struct events *events = sampler->events;

	while (!events->stop && !events->target_ended && clock_now_ns() < deadline_ns) {
		processes_wait(processes, deadline_ns);
		if (sampler->launch && launch_poll(sampler->launch))
			events->target_ended = true;
	}
	return !events->stop && !events->target_ended;
}

struct loop {
	const struct sampler *sampler; // borrowed, as the next three
	struct processes *processes;
	struct profile *profile;
	struct run_stats *stats;
	struct schedule schedule;
	struct budget budget;
	int64_t cpu_ns;        // what counts against the budget, as last read...
	int64_t unread_ns;     // ...and how long the ticks since then have taken...
	unsigned int n_unread; // ...and how many there were
};

static int64_t cpu_spent(struct loop *loop)
{
	if (loop->unread_ns > MAX_UNREAD_NS || loop->n_unread >= MAX_UNREAD_TICKS ||
	    loop->budget.cpu_left_ns < MAX_UNREAD_NS) {
		// What is spent only once does not count.
		loop->cpu_ns =
		    clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - loop->stats->tasks.first_looks_ns;
		loop->unread_ns = loop->n_unread = 0;
	}
	loop->n_unread++;
	return loop->cpu_ns;
}

static struct budget_spent spent_until(struct loop *loop, int64_t now_ns)
{
	const struct run_stats *stats = loop->stats;

	return (struct budget_spent){
	    .now_ns = now_ns,
	    .cpu_ns = cpu_spent(loop),
	    .held_ns = stats->held_ns - stats->held_waiting_ns,
	};
}

// Takes a tick. False if the target has ended.
static bool tick(struct loop *loop, const struct stretch *stretch)
{
	if (processes_tick(loop->processes, stretch))
		return true;
	loop->sampler->events->target_ended = true; // seen before its pidfd told
	return false;
}

static void note_skipped(struct loop *loop, const struct stretch *stretch)
{
	loop->stats->missed_ticks += stretch->n_missed;
	loop->stats->thinned_ticks += stretch->n_left_out;
}

// Calls one of the sampler's functions between ticks, which may write to whoever does not read.
static void call(struct loop *loop, void (*function)(void *context))
{
	const bool begun = processes_begin_work(loop->processes);

	function(loop->sampler->context);
	processes_end_work(loop->processes, begun);
}

// Takes the first tick at once, so that nothing that ends soon goes unseen; it stands for no time.
static bool first_tick(struct loop *loop)
{
	const struct sampler *sampler = loop->sampler;
	const int64_t start_ns = loop->stats->start_ns;

	if (!tick(loop, &(struct stretch){start_ns, start_ns, start_ns, 0, 0}))
		return false;
	// The cost of beginning does not count as overhead.
	const struct budget_spent spent = spent_until(loop, clock_now_ns());
	budget_init(&loop->budget, sampler->max_overhead_percent, &spent);
	if (sampler->looked)
		processes_visit(loop->processes, sampler->looked, sampler->context);
	call(loop, sampler->ticked);
	if (sampler->launch && sampler->launch->held) {
		launch_release(sampler->launch);
		processes_set_held(loop->processes, false);
	}
	return true;
}

// Plans the next tick: later than in its period while there is a debt.
static void plan_next(struct loop *loop)
{
	const struct budget_spent spent = spent_until(loop, clock_now_ns());
	const int64_t paid_ns = budget_paid_ns(&loop->budget, &spent);

	if (paid_ns > spent.now_ns)
		schedule_extend(&loop->schedule, spent.now_ns, paid_ns);
}

// Takes a tick that is due.
static bool next_tick(struct loop *loop)
{
	const struct sampler *sampler = loop->sampler;
	const int64_t now_ns = clock_now_ns();
	struct stretch stretch;

	schedule_take(&loop->schedule, now_ns, &stretch);
	histogram_add(&loop->stats->tick_late, now_ns - stretch.due_ns);
	note_skipped(loop, &stretch);
	// A late tick shows what is so when it begins.
	if (stretch.due_ns < now_ns - SWITCH_NS)
		stretch.due_ns = now_ns - SWITCH_NS;
	call(loop, sampler->passed);
	if (!tick(loop, &stretch))
		return false;
	call(loop, sampler->ticked);
	loop->unread_ns += clock_now_ns() - now_ns;
	plan_next(loop);
	return true;
}

// Takes a last tick if the last one belongs to an earlier period, so that the time up to the end is
// accounted for. If the target has ended, there is nothing to see.
static void end_ticks(struct loop *loop)
{
	struct run_stats *stats = loop->stats;
	struct stretch rest;

	schedule_rest(&loop->schedule, clock_now_ns(), &rest);
	if (loop->sampler->events->target_ended)
		rest.n_missed = 0;
	if (rest.until_ns > stats->last_ns) {
		note_skipped(loop, &rest);
		if (!loop->sampler->events->target_ended)
			tick(loop, &rest);
	}
	if (rest.until_ns < stats->last_ns)
		stats->last_ns = rest.until_ns;
}

static void tick_until_end(struct loop *loop)
{
	struct schedule *schedule = &loop->schedule;

	if (!first_tick(loop) || loop->sampler->once)
		return;
	while (wait_until(loop->sampler, loop->processes, schedule_due_ns(schedule)) &&
	       !schedule_is_over(schedule) && next_tick(loop))
		;
	end_ticks(loop);
}

static void end_by_itself(struct loop *loop)
{
	processes_finish(loop->processes);
	holding_note_over();
	loop->stats->cpu_ns += clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

// Returns a seed that a program in step with the ticks cannot guess.
static uint32_t random_seed(void)
{
	uint32_t seed = 0;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (uint32_t)hash_mix((uint64_t)clock_now_ns(), (uint64_t)getpid());
	return seed ? seed : 1;
}

static void begin(struct loop *loop)
{
	const struct sampler *sampler = loop->sampler;
	struct profile *profile = loop->profile;
	struct run_stats *stats = loop->stats;

	if (!sampler->launch) // a command has only one thread yet
		processes_prime(loop->processes, clock_now_ns());
	profile->start_time_ns = clock_read_ns(CLOCK_REALTIME);
	stats->start_ns = clock_now_ns();
	profile_begin(profile, stats->start_ns);
	sampler->started(sampler->context);
	schedule_init(&loop->schedule, stats->start_ns, profile->period_ns, sampler->duration_ns,
	              stats->seed);
}

static void sample(struct loop *loop)
{
	holding_expect_end(loop->sampler->duration_ns);
	begin(loop);
	tick_until_end(loop);
	end_by_itself(loop);
}

static void end(const struct loop *loop)
{
	struct profile *profile = loop->profile;
	struct run_stats *stats = loop->stats;

	profile_end_watch(profile, stats->last_ns);
	stats->lost_privileges = privileged_exec_count_lost();
	stats->end_ns = clock_now_ns();
	profile->duration_ns = stats->last_ns - stats->start_ns;
	profile->late_ns = share_doubts_late_ns(stats);
	profile_follow_clock(profile);
}

struct error *sampler_run(const struct sampler *sampler, struct profile *profile,
                          struct run_stats *stats)
{
	struct processes processes;
	struct priority priority;
	struct loop loop = {
	    .sampler = sampler,
	    .processes = &processes,
	    .profile = profile,
	    .stats = stats,
	    .n_unread = MAX_UNREAD_TICKS,
	};

	stats->frequency_hz = sampler->frequency_hz;
	stats->duration_ns = sampler->duration_ns;
	stats->seed = sampler->seed ? sampler->seed : random_seed();
	stats->max_overhead_percent = sampler->max_overhead_percent;
	if (!processes_init(&processes, sampler, profile, stats))
		return error_create(EXIT_STATUS_TARGET, "no address space left for stack copies: "
		                                        "raise the limit (ulimit -v)");
	processes_set_held(&processes, sampler->launch && sampler->launch->held);
	profile->period_ns = (int64_t)((double)NS_PER_SECOND / sampler->frequency_hz);
	priority_raise(&priority);
	stats->priority = priority.level;
	stats->cpu_ns = -clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	sample(&loop);
	priority_restore(&priority);
	end(&loop);
	processes_deinit(&processes);
	return NULL;
}
