#include "quiet.h"

#include "clock.h"
#include "load.h"
#include "proc.h"
#include "target.h"

enum { LEAVE_NS_PER_THREAD = 100 };

void quiet_init(struct quiet *quiet)
{
	*quiet = (struct quiet){.clock_ns = -1};
}

static int64_t read_clock(const struct target *target)
{
	return clock_read_ns(clock_of_process(target->pid));
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

bool quiet_is_alone(struct quiet *quiet, const struct target *target, const struct load *load,
                    long n_others)
{
	const int64_t until_ns = clock_now_ns() + (int64_t)target->n_threads * LEAVE_NS_PER_THREAD;

	if (n_others <= 0)
		return n_others == 0;
	while (load_others(load) != 0)
		if (clock_now_ns() > until_ns)
			return false;
	return !quiet_clock_moved(quiet, target);
}

static int64_t rest_of(const struct target *target)
{
	return read_clock(target) - used_by_threads(target);
}

bool quiet_holds(struct quiet *quiet, const struct target *target, const struct load *load,
                 long n_others, long n_running)
{
	const int64_t rest_ns = rest_of(target);
	const bool same = quiet->known && rest_ns == quiet->rest_ns;

	quiet->rest_ns = rest_ns;
	return same && n_others == n_running && load_others(load) == n_others;
}

void quiet_settle(struct quiet *quiet, const struct target *target)
{
	for (size_t i = 0; i < target->n_threads; i++) {
		struct target_thread *thread = target->threads[i];
		if (!thread->to_look_at)
			proc_read_schedstat(thread->schedstat_fd, target->pid, thread->tid,
			                    &thread->last);
	}
	const int64_t rest_ns = rest_of(target);
	// If a sleeper had run meanwhile, it would be less than before.
	quiet->known = target->sees_schedstat && rest_ns == quiet->rest_ns;
	quiet->rest_ns = rest_ns;
}
