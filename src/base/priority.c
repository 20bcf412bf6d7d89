// SPDX-License-Identifier: MIT
#include "priority.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// The shortest that the kernel allows (fair.c: clamped to 0.1 ms).
enum { SLICE_NS = 100000, FLAG_RESET_ON_FORK = 1 };

// struct sched_attr of linux/sched/types.h, version 0; the C library had none before 2.41.
struct slice_attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

static bool read_attributes(struct slice_attributes *ret)
{
	return syscall(SYS_sched_getattr, 0, ret, sizeof(*ret), 0) == 0;
}

// Sets this thread's slice; 0: the usual one. False if the kernel does not: before 6.12 it ignores
// the request.
static bool set_slice(int64_t slice_ns)
{
	struct slice_attributes attributes = {0};

	if (!read_attributes(&attributes))
		return false;
	attributes.flags = FLAG_RESET_ON_FORK;
	attributes.runtime_ns = slice_ns;
	if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0 || !read_attributes(&attributes))
		return false;
	return attributes.runtime_ns == (uint64_t)slice_ns;
}

const char *priority_name(enum priority_level level)
{
	switch (level) {
	case PRIORITY_SLICE:
		return "short slice";
	case PRIORITY_NICE:
		return "nice -20";
	case PRIORITY_REALTIME:
		return "SCHED_FIFO";
	default:
		return "usual";
	}
}

void priority_raise(struct priority *priority)
{
	const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};

	*priority = (struct priority){.level = PRIORITY_USUAL};
	errno = 0;
	priority->original_nice = getpriority(PRIO_PROCESS, 0);
	// Someone has arranged this process's scheduling already.
	if (errno || sched_getscheduler(0) != SCHED_OTHER)
		return;
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) == 0) {
		priority->level = PRIORITY_REALTIME;
		return;
	}
	priority->is_nice = setpriority(PRIO_PROCESS, 0, -20) == 0;
	priority->is_sliced = set_slice(SLICE_NS);
	if (priority->is_sliced)
		priority->level = PRIORITY_SLICE;
	else if (priority->is_nice)
		priority->level = PRIORITY_NICE;
}

void priority_restore(const struct priority *priority)
{
	const struct sched_param none = {0};

	if (priority->level == PRIORITY_REALTIME)
		sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);
	if (priority->is_sliced)
		set_slice(0);
	if (priority->is_nice)
		setpriority(PRIO_PROCESS, 0, priority->original_nice);
}
