// SPDX-License-Identifier: MIT
#include "cpu_waits.h"

#include <inttypes.h>
#include <stdlib.h>

#include "clock.h"
#include "memory.h"
#include "profile.h"
#include "text.h"

enum {
	LEAST_SHARE = 5, // a fifth of the active time is told of...
	LEAST_TIME = 10, // ...if it is a tenth of all the time: else nobody feels it...
	LEAST_DELAY_NS = 10 * NS_PER_MS, // ...and this long, for a command that ends at once
	LEAST_PERIODS = 10, // a limit that was used up in a tenth of its periods is the cause
	LEAST_THREAD = 100, // a thread with a hundredth of the active time counts
	// A process keeps itself waiting if it has four fifths of its CPUs' time, or if its threads
	// would wait for so long without other processes as well.
	LEAST_USED_PERCENT = 80,
	LEAST_OWN_PERCENT = 40,
	// With less of its CPUs' time, it is others that keep it waiting, whatever it wants itself.
	LEAST_RAN_PERCENT = 5,
};

void cpu_log_add(struct cpu_log *log, const struct cpu_waits *figures)
{
	*array_push(log->items, log->count, log->capacity) = *figures;
}

void cpu_log_deinit(struct cpu_log *log)
{
	free(log->items);
	*log = (struct cpu_log){0};
}

// Returns the reading that is nearest to the time; before the first one all is 0.
static const struct cpu_waits *nearest(const struct cpu_log *log, int64_t ns)
{
	static const struct cpu_waits none = {0};
	size_t low = 0, high = log->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (log->items[middle].at_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	const struct cpu_waits *before = low > 0 ? &log->items[low - 1] : &none;
	if (low == log->count)
		return before;
	const struct cpu_waits *after = &log->items[low];
	return ns - before->at_ns <= after->at_ns - ns ? before : after;
}

// A reading may be lower than an earlier one, by another control group's figures.
static int64_t more(int64_t last, int64_t first)
{
	return last > first ? last - first : 0;
}

struct cpu_waits cpu_log_between(const struct cpu_log *log, int64_t from_ns, int64_t to_ns)
{
	const struct cpu_waits *first = nearest(log, from_ns), *last = nearest(log, to_ns);

	if (last->at_ns <= first->at_ns)
		return (struct cpu_waits){0};
	return (struct cpu_waits){
	    .at_ns = last->at_ns - first->at_ns,
	    .cpu_ns = more(last->cpu_ns, first->cpu_ns),
	    .delay_ns = more(last->delay_ns, first->delay_ns),
	    .n_cpus = last->n_cpus,
	    .limit = last->limit,
	    .n_periods = (uint64_t)more((int64_t)last->n_periods, (int64_t)first->n_periods),
	    .n_throttled = (uint64_t)more((int64_t)last->n_throttled, (int64_t)first->n_throttled),
	    .throttled_ns = more(last->throttled_ns, first->throttled_ns),
	};
}

void cpu_waits_sum(struct cpu_waits *figures, const struct profile *profile)
{
	bool is_known = profile->forgotten.kernel_cpu_ns > 0;

	figures->cpu_ns = profile->forgotten.kernel_cpu_ns;
	figures->delay_ns = profile->forgotten.kernel_delay_ns;
	for (size_t i = 0; i < profile->n_threads; i++) {
		const struct thread *thread = &profile->threads[i];
		if (thread->forgotten || thread->kernel_cpu_ns < 0)
			continue;
		is_known = true;
		figures->cpu_ns += thread->kernel_cpu_ns;
		figures->delay_ns += thread->kernel_delay_ns;
	}
	if (!is_known)
		figures->cpu_ns = figures->delay_ns = -1;
}

size_t cpu_waits_count_threads(const struct profile *profile)
{
	const size_t n = profile->n_threads + 1;
	_cleanup_free_ double *active_ns = memory_alloc_zeroed(n, sizeof(*active_ns));
	_cleanup_free_ double *lived_ns = memory_alloc_zeroed(n, sizeof(*lived_ns));
	double all_active_ns = 0, all_lived_ns = 0, longest_ns = 1;

	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct sample *sample = &profile->samples[i];
		const double ns = sample->count ? (double)sample->wall_ns : 0;
		lived_ns[sample->thread] += ns;
		active_ns[sample->thread] += thread_state_is_blocked(sample->state) ? 0 : ns;
		all_active_ns += thread_state_is_blocked(sample->state) ? 0 : ns;
	}
	for (size_t i = 0; i < n; i++) {
		longest_ns = lived_ns[i] > longest_ns ? lived_ns[i] : longest_ns;
		if (active_ns[i] > 0 && active_ns[i] * LEAST_THREAD >= all_active_ns)
			all_lived_ns += lived_ns[i];
	}
	return (size_t)(all_lived_ns / longest_ns + 0.5);
}

static char *text_of_limit(const struct cpu_waits *figures)
{
	const double cpus = (double)figures->limit / 1000;
	_cleanup_free_ char *limit =
	    figures->limit
	        ? memory_printf("may use %g CPU%s, and ", cpus, figures->limit == 1000 ? "" : "s")
	        : memory_strdup("");

	return memory_printf(": its control group %swas throttled in %" PRIu64 " of %" PRIu64
	                     " periods",
	                     limit, figures->n_throttled, figures->n_periods);
}

// True if the threads that want to run are too many for the CPUs.
static bool wants_more(const struct cpu_waits *figures, size_t n_threads)
{
	const double all_ns = (double)figures->n_cpus * (double)figures->at_ns;
	const double used_ns = (double)figures->cpu_ns, delay_ns = (double)figures->delay_ns;

	return n_threads > figures->n_cpus && 100 * used_ns >= LEAST_RAN_PERCENT * all_ns &&
	       (100 * used_ns >= LEAST_USED_PERCENT * all_ns ||
	        100 * (used_ns + delay_ns - all_ns) >= LEAST_OWN_PERCENT * delay_ns);
}

// Returns what kept the threads waiting, as far as that is known.
static char *text_of_cause(const struct cpu_waits *figures, size_t n_threads, bool *ret_by_others)
{
	*ret_by_others = false;
	if (figures->n_throttled > 0 && figures->n_throttled >= figures->n_periods / LEAST_PERIODS)
		return text_of_limit(figures);
	if (n_threads == 0 || figures->n_cpus == 0)
		return memory_strdup("");
	if (wants_more(figures, n_threads))
		return memory_printf(": %zu threads share %" PRIu32 " CPU%s", n_threads,
		                     figures->n_cpus, text_plural(figures->n_cpus));
	*ret_by_others = true;
	return memory_printf(": other processes use its CPU%s as well",
	                     text_plural(figures->n_cpus));
}

// Returns them with three digits, but never as 1.58e-05; a new string.
static char *text_of_seconds(int64_t ns)
{
	const double seconds = clock_seconds(ns);

	return memory_printf(seconds < 0.1 ? "%.3f" : "%.3g", seconds);
}

char *cpu_waits_text(const struct cpu_waits *figures, size_t n_threads, bool *ret_by_others)
{
	const int64_t active_ns = figures->cpu_ns + figures->delay_ns;

	*ret_by_others = false;
	if (figures->delay_ns <= active_ns / LEAST_SHARE ||
	    figures->delay_ns <= figures->at_ns / LEAST_TIME || figures->delay_ns < LEAST_DELAY_NS)
		return NULL;
	_cleanup_free_ char *cause = text_of_cause(figures, n_threads, ret_by_others);
	_cleanup_free_ char *waited = text_of_seconds(figures->delay_ns);
	_cleanup_free_ char *ran = text_of_seconds(figures->cpu_ns);
	return memory_printf("waited %s s for a CPU, and ran for %s s%s", waited, ran, cause);
}
