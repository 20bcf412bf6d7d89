// SPDX-License-Identifier: MIT
#include "cpu_watch.h"

#include <sched.h>

#include "clock.h"
#include "profile.h"
#include "run_stats.h"

enum {
	MAX_CPU_BYTES = 1024, // 8,192 CPUs, as many as Linux can have
	MAX_THREADS = 256,    // whose CPUs are looked up
	LEAST_SHARE = 100,    // of threads that use a hundredth of the CPU time at least
};

void cpu_watch_begin(struct cpu_watch *watch, int pid)
{
	*watch = (struct cpu_watch){0};
	cpu_limit_open(pid, &watch->limit);
}

void cpu_watch_deinit(struct cpu_watch *watch)
{
	cpu_limit_close(&watch->limit);
	cpu_log_deinit(&watch->log);
}

// Returns how many CPUs those threads may use that need some; 0: not known.
static uint32_t count_cpus(const struct profile *profile, const struct cpu_waits *figures)
{
	cpu_set_t all[MAX_CPU_BYTES / sizeof(cpu_set_t)], one[MAX_CPU_BYTES / sizeof(cpu_set_t)];
	const int64_t least_ns = (figures->cpu_ns + figures->delay_ns) / LEAST_SHARE;
	size_t n = 0;

	CPU_ZERO_S(MAX_CPU_BYTES, all);
	for (size_t i = 0; i < profile->n_threads && n < MAX_THREADS; i++) {
		const struct thread *thread = &profile->threads[i];
		if (thread->ended || thread->is_task ||
		    thread->kernel_cpu_ns + thread->kernel_delay_ns < least_ns ||
		    sched_getaffinity(thread->tid, MAX_CPU_BYTES, one) != 0)
			continue;
		CPU_OR_S(MAX_CPU_BYTES, all, all, one);
		n++;
	}
	return (uint32_t)CPU_COUNT_S(MAX_CPU_BYTES, all);
}

// Keeps what was read last where the process, or its control group, is gone.
static void keep_last(struct cpu_waits *figures, const struct cpu_waits *last)
{
	if (figures->n_cpus == 0)
		figures->n_cpus = last->n_cpus;
	if (figures->n_periods >= last->n_periods)
		return;
	figures->limit = last->limit;
	figures->n_periods = last->n_periods;
	figures->n_throttled = last->n_throttled;
	figures->throttled_ns = last->throttled_ns;
}

void cpu_watch_look(struct cpu_watch *watch, const struct profile *profile,
                    const struct run_stats *stats, bool ended)
{
	const struct cpu_log *log = &watch->log;
	const struct cpu_waits *last = log->count ? &log->items[log->count - 1] : NULL;
	struct cpu_waits figures = {.at_ns = stats->last_ns - stats->start_ns};
	struct cpu_throttling throttling;

	if (figures.at_ns - (last ? last->at_ns : 0) < (ended ? 1 : NS_PER_SECOND))
		return;
	cpu_waits_sum(&figures, profile);
	if (figures.cpu_ns < 0)
		return;
	cpu_limit_read(&watch->limit, &throttling, &figures.limit);
	figures.n_periods = throttling.n_periods;
	figures.n_throttled = throttling.n_throttled;
	figures.throttled_ns = throttling.throttled_ns;
	figures.n_cpus = count_cpus(profile, &figures);
	if (last)
		keep_last(&figures, last);
	cpu_log_add(&watch->log, &figures);
}

struct cpu_waits cpu_watch_whole(const struct cpu_watch *watch)
{
	return cpu_log_between(&watch->log, 0, INT64_MAX);
}

char *cpu_watch_text(const struct cpu_watch *watch, const struct profile *profile,
                     bool *ret_by_others)
{
	const struct cpu_waits figures = cpu_watch_whole(watch);

	return cpu_waits_text(&figures, cpu_waits_count_threads(profile), ret_by_others);
}
