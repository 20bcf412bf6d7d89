// SPDX-License-Identifier: MIT
#include "share_doubts.h"

#include <stdbool.h>

#include "clock.h"
#include "histogram.h"
#include "memory.h"
#include "profile.h"
#include "run_stats.h"
#include "weights.h"

// Sums of the profile's threads. Short: with too few samples to be weighed. The kernel's count of
// these is only a part of their time, as it lacks what came after their last tick.
struct sums {
	double running_ns, cpu_ns; // of all others: as sampled, and as the kernel counted
	double untold_ns;          // of this the kernel's count is not known yet
	double wall_ns, short_wall_ns;
	bool knows_cpu;
};

int64_t share_doubts_late_ns(const struct run_stats *stats)
{
	return stats->priority == PRIORITY_REALTIME ? 0
	                                            : histogram_percentile(&stats->tick_late, 0.9);
}

static int64_t find_now_ns(const struct profile *profile)
{
	int64_t now_ns = profile->start_ns;

	for (size_t i = 0; i < profile->n_threads; i++)
		now_ns =
		    profile->threads[i].last_ns > now_ns ? profile->threads[i].last_ns : now_ns;
	return now_ns;
}

// A thread that still is as it was last seen has had samples since that are not counted yet.
static int64_t uncounted_ns(const struct profile *profile, const struct thread *thread,
                            int64_t now_ns)
{
	return profile->duration_ns == 0 && !thread->ended ? now_ns - thread->last_ns : 0;
}

static bool *find_short(const struct profile *profile, int64_t now_ns)
{
	bool *is_short = memory_alloc_zeroed(profile->n_threads + 1, sizeof(*is_short));
	_cleanup_free_ uint64_t *ticks =
	    memory_alloc_zeroed(profile->n_threads + 1, sizeof(*ticks));

	for (size_t i = 0; i < profile->n_samples; i++)
		ticks[profile->samples[i].thread] += profile->samples[i].count;
	for (size_t i = 0; i < profile->n_threads; i++) {
		const int64_t ns = uncounted_ns(profile, &profile->threads[i], now_ns);
		is_short[i] = ticks[i] + (uint64_t)(ns / profile->period_ns) < WEIGHTS_MIN_TICKS;
	}
	return is_short;
}

static void add_thread(struct sums *sums, const struct profile *profile,
                       const struct thread *thread, bool is_short, int64_t now_ns)
{
	const double wall_ns = (double)(thread->last_ns - thread->first_ns - thread->away_ns +
	                                uncounted_ns(profile, thread, now_ns));
	const int64_t untold_ns = thread->last_ns - thread->last_figures.at_ns;

	sums->wall_ns += wall_ns;
	sums->short_wall_ns += is_short ? wall_ns : 0;
	if (is_short || thread->kernel_cpu_ns < 0)
		return;
	sums->knows_cpu = true;
	sums->cpu_ns += (double)thread->kernel_cpu_ns;
	if (profile->duration_ns == 0 && untold_ns > 0)
		sums->untold_ns += (double)untold_ns;
}

static struct sums sum_up(const struct profile *profile, int64_t now_ns)
{
	struct sums sums = {
	    .running_ns = (double)profile->forgotten.cpu_ns,
	    .cpu_ns = (double)profile->forgotten.kernel_cpu_ns,
	};
	_cleanup_free_ bool *is_short = find_short(profile, now_ns);

	for (size_t i = 0; i < profile->n_threads; i++)
		if (!profile->threads[i].forgotten)
			add_thread(&sums, profile, &profile->threads[i], is_short[i], now_ns);
	for (size_t i = 0; i < profile->n_samples; i++)
		if (!is_short[profile->samples[i].thread])
			sums.running_ns += (double)profile->samples[i].cpu_ns;
	return sums;
}

static char *text_of_bias(const struct sums *sums, int64_t period_ns)
{
	enum { LEAST_SHARE = 4, SIGMAS = 4 };
	const double cpu_ns = sums->cpu_ns, variance = (sums->running_ns + cpu_ns) * period_ns;
	double off_ns = sums->running_ns - cpu_ns;

	if (off_ns > 0)
		off_ns = off_ns > sums->untold_ns ? off_ns - sums->untold_ns : 0;
	if (!sums->knows_cpu || off_ns * off_ns * LEAST_SHARE * LEAST_SHARE < cpu_ns * cpu_ns ||
	    off_ns * off_ns <= SIGMAS * SIGMAS * variance)
		return NULL;
	return memory_printf("which functions used the CPU may be wrong in part: samples saw %.2f "
	                     "s of running, the kernel counted %.2f s (totals are the kernel's)",
	                     sums->running_ns / (double)NS_PER_SECOND,
	                     cpu_ns / (double)NS_PER_SECOND);
}

static char *text_of_short_lives(const struct sums *sums, int64_t late_ns)
{
	enum { LEAST_PERCENT = 20 };
	const double percent = sums->wall_ns > 0 ? 100 * sums->short_wall_ns / sums->wall_ns : 0;

	if (percent < LEAST_PERCENT || late_ns < NS_PER_MS)
		return NULL;
	return memory_printf(
	    "%.0f %% of the time belongs to threads with fewer than %d samples, and one sample in "
	    "ten was over %.1f ms late: how that time divides is uncertain (as root, samples come "
	    "in time)",
	    percent, WEIGHTS_MIN_TICKS, (double)late_ns / (double)NS_PER_MS);
}

char *share_doubts_text(const struct profile *profile)
{
	const int64_t now_ns = find_now_ns(profile);

	if (profile->period_ns <= 0 ||
	    now_ns - profile->start_ns < WEIGHTS_MIN_TICKS * profile->period_ns)
		return NULL;
	const struct sums sums = sum_up(profile, now_ns);
	char *bias = text_of_bias(&sums, profile->period_ns);
	_cleanup_free_ char *lives = text_of_short_lives(&sums, profile->late_ns);
	if (!bias || !lives)
		return bias ?: take_pointer(lives);
	char *both = memory_printf("%s; %s", bias, lives);
	free(bias);
	return both;
}
