#include "sampler.h"

#include "budget.h"
#include "clock.h"
#include "events.h"
#include "launch.h"
#include "priority.h"
#include "profile.h"
#include "rule_cache.h"
#include "run.h"
#include "tick.h"

// Waits for the deadline, meanwhile serving threads that stop late. False: it is over.
static bool wait_until(const struct sampler *sampler, struct ticker *ticker, int64_t deadline_ns)
{
	struct events *events = sampler->events;

	while (!events->stop && !events->target_ended && clock_now_ns() < deadline_ns) {
		ticker_wait(ticker, deadline_ns);
		if (sampler->launch && launch_poll(sampler->launch))
			events->target_ended = true;
	}
	return !events->stop && !events->target_ended;
}

// The first deadline after now; those that have passed already are missed.
static int64_t next_deadline(struct run *run, int64_t deadline_ns, int64_t period_ns,
                             int64_t end_ns)
{
	const int64_t now_ns = clock_now_ns();

	deadline_ns += period_ns;
	if (now_ns > deadline_ns) {
		const int64_t passed = (now_ns - deadline_ns) / period_ns + 1;
		run->missed_ticks += passed;
		deadline_ns += passed * period_ns;
	}
	return end_ns && deadline_ns > end_ns ? end_ns : deadline_ns;
}

static void tick_until_end(const struct sampler *sampler, struct ticker *ticker, struct run *run,
                           int64_t period_ns)
{
	const int64_t end_ns = sampler->duration_ns ? run->start_ns + sampler->duration_ns : 0;
	int64_t deadline_ns = run->start_ns;
	struct budget budget;

	budget_init(&budget, sampler->max_overhead_percent, run->start_ns);
	for (;;) {
		const bool last = end_ns && deadline_ns >= end_ns;
		const bool allowed = budget_allows(&budget, clock_now_ns(), run->held_ns);
		if (!allowed && !last)
			run->thinned_ticks++;
		else if (!ticker_tick(ticker, clock_now_ns()))
			return;
		if (sampler->launch && sampler->launch->held) {
			launch_release(sampler->launch);
			ticker->held_at_exec = false;
		}
		if (sampler->progress)
			sampler->progress(sampler->progress_context, run);
		if (last)
			return;
		deadline_ns = next_deadline(run, deadline_ns, period_ns, end_ns);
		if (!wait_until(sampler, ticker, deadline_ns)) {
			// One sample more, so that the last stretch of time is accounted for.
			if (!sampler->events->target_ended)
				ticker_tick(ticker, clock_now_ns());
			return;
		}
	}
}

bool sampler_run(const struct sampler *sampler, struct profile *profile, struct run *run)
{
	const int64_t period_ns = (int64_t)((double)NS_PER_SECOND / sampler->frequency_hz);
	struct rule_cache rules = {0};
	struct ticker ticker;

	const struct ticker_setup setup = {
	    .target = sampler->target,
	    .profile = profile,
	    .modules = sampler->modules,
	    .rules = &rules,
	    .events = sampler->events,
	    .run = run,
	    .max_frames = sampler->max_frames,
	    .stop_all = sampler->stop_all,
	};
	struct priority priority;

	run->frequency_hz = sampler->frequency_hz;
	run->duration_ns = sampler->duration_ns;
	run->max_overhead_percent = sampler->max_overhead_percent;
	if (!ticker_init(&ticker, &setup))
		return false;
	ticker.held_at_exec = sampler->launch != NULL;
	profile->period_ns = period_ns;
	priority_raise(&priority);
	run->priority_raised = priority.level != PRIORITY_USUAL;
	run->cpu_ns = -clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	profile->start_time_ns = clock_read_ns(CLOCK_REALTIME);
	run->start_ns = clock_now_ns();
	tick_until_end(sampler, &ticker, run, period_ns);
	ticker_finish(&ticker);
	priority_restore(&priority);
	run->cpu_ns += clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	profile->duration_ns = run->last_ns - run->start_ns;
	run->n_frames = ticker.unwinder.n_frames;
	run->n_frame_pointer_steps = ticker.unwinder.n_frame_pointer_steps;
	run->n_rules = rules.n_made;
	ticker_deinit(&ticker);
	rule_cache_deinit(&rules);
	return true;
}
