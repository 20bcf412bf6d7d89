// SPDX-License-Identifier: MIT
#include "priority.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>

void priority_raise(struct priority *priority)
{
	const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};

	*priority = (struct priority){.level = PRIORITY_USUAL};
	errno = 0;
	priority->original_nice = getpriority(PRIO_PROCESS, 0);
	// Someone has arranged this process's scheduling already.
	if (errno || sched_getscheduler(0) != SCHED_OTHER)
		return;
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) == 0)
		priority->level = PRIORITY_REALTIME;
	else if (setpriority(PRIO_PROCESS, 0, -20) == 0)
		priority->level = PRIORITY_NICE;
}

void priority_restore(const struct priority *priority)
{
	const struct sched_param none = {0};

	if (priority->level == PRIORITY_REALTIME)
		sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);
	else if (priority->level == PRIORITY_NICE)
		setpriority(PRIO_PROCESS, 0, priority->original_nice);
}
