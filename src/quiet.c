#include "quiet.h"

#include "clock.h"
#include "load.h"
#include "target.h"

enum { CPUCLOCK_SCHED = 2 }; // of a process, not a thread: <linux/posix-timers.h>

void quiet_init(struct quiet *quiet)
{
	*quiet = (struct quiet){.clock_ns = -1};
}

static int64_t read_clock(const struct target *target)
{
	return clock_read_ns((clockid_t)(~(unsigned int)target->pid << 3 | CPUCLOCK_SCHED));
}

bool quiet_clock_moved(struct quiet *quiet, const struct target *target)
{
	const int64_t last_ns = quiet->clock_ns;

	quiet->clock_ns = read_clock(target);
	return quiet->clock_ns < 0 || quiet->clock_ns != last_ns;
}

// What the threads have used, as last read of each.
static int64_t used_by_threads(const struct target *target)
{
	uint64_t sum_ns = 0;

	for (size_t i = 0; i < target->n_threads; i++)
		sum_ns += target->threads[i]->last.cpu_ns;
	return (int64_t)sum_ns;
}

void quiet_settle(struct quiet *quiet, const struct target *target)
{
	// What was added meanwhile may be that of a thread which was looked at before it.
	quiet->known = target->sees_schedstat && !quiet_clock_moved(quiet, target);
	quiet->rest_ns = quiet->clock_ns - used_by_threads(target);
}

bool quiet_holds(struct quiet *quiet, const struct target *target, const struct load *load,
                 long n_others, long n_running)
{
	if (!quiet->known || n_others != n_running || load_others(load) != n_others)
		return false;
	return read_clock(target) - used_by_threads(target) == quiet->rest_ns;
}
