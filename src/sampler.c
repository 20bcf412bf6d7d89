#include "sampler.h"

#include "budget.h"
#include "clock.h"
#include "events.h"
#include "launch.h"
#include "priority.h"
#include "processes.h"
#include "profile.h"
#include "run.h"

// Waits for the deadline, meanwhile serving threads that stop late. False: it is over.
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

// The last deadline that has passed; those before it are missed.
static int64_t skip_missed(struct run *run, int64_t deadline_ns, int64_t period_ns, int64_t now_ns)
{
	const int64_t passed = now_ns > deadline_ns ? (now_ns - deadline_ns) / period_ns : 0;

	run->missed_ticks += passed;
	return deadline_ns + passed * period_ns;
}

static void tick_until_end(const struct sampler *sampler, struct processes *processes,
                           struct run *run, int64_t period_ns)
{
	const int64_t end_ns = sampler->duration_ns ? run->start_ns + sampler->duration_ns : 0;
	int64_t deadline_ns = run->start_ns;
	struct budget budget;

	budget_init(&budget, sampler->max_overhead_percent, run->start_ns);
	for (;;) {
		const int64_t now_ns = clock_now_ns();
		const bool last = end_ns && now_ns >= end_ns;
		const bool allowed = budget_allows(&budget, now_ns, run->held_ns);
		deadline_ns = skip_missed(run, deadline_ns, period_ns, now_ns);
		if (!allowed && !last)
			run->thinned_ticks++;
		else if (!processes_tick(processes, now_ns)) {
			sampler->events->target_ended = true; // seen before its pidfd told
			return;
		}
		if (run->ticks == 1) // what it takes to begin is no overhead of sampling on
			budget_init(&budget, sampler->max_overhead_percent, clock_now_ns());
		sampler->ticked(sampler->context);
		if (sampler->launch && sampler->launch->held) {
			launch_release(sampler->launch);
			processes_set_held(processes, false);
		}
		if (last)
			return;
		deadline_ns += period_ns;
		if (end_ns && deadline_ns > end_ns)
			deadline_ns = end_ns;
		if (!wait_until(sampler, processes, deadline_ns)) {
			// One sample more, so that the last stretch of time is accounted for.
			if (!sampler->events->target_ended)
				processes_tick(processes, clock_now_ns());
			return;
		}
	}
}

bool sampler_run(const struct sampler *sampler, struct profile *profile, struct run *run)
{
	const int64_t period_ns = (int64_t)((double)NS_PER_SECOND / sampler->frequency_hz);
	const struct processes_options options = {
	    .max_frames = sampler->max_frames,
	    .stop_all = sampler->stop_all,
	    .children = sampler->children,
	    .kernel = sampler->kernel,
	    .counts_at_once = sampler->counts_at_once,
	};
	struct processes processes;
	struct priority priority;

	run->frequency_hz = sampler->frequency_hz;
	run->duration_ns = sampler->duration_ns;
	run->max_overhead_percent = sampler->max_overhead_percent;
	if (!processes_init(&processes, sampler->target, &options, profile, sampler->modules,
	                    sampler->events, run))
		return false;
	processes_set_held(&processes, sampler->launch != NULL);
	profile->period_ns = period_ns;
	priority_raise(&priority);
	run->priority_raised = priority.level != PRIORITY_USUAL;
	run->cpu_ns = -clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (!sampler->launch) // a command has but one thread yet
		processes_prime(&processes, clock_now_ns());
	profile->start_time_ns = clock_read_ns(CLOCK_REALTIME);
	run->start_ns = clock_now_ns();
	profile_begin(profile, run->start_ns);
	sampler->started(sampler->context);
	tick_until_end(sampler, &processes, run, period_ns);
	processes_finish(&processes);
	profile_end_spans(profile);
	run->end_ns = clock_now_ns();
	priority_restore(&priority);
	run->cpu_ns += clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	profile->duration_ns = run->last_ns - run->start_ns;
	processes_deinit(&processes);
	return true;
}
