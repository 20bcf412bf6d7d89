// SPDX-License-Identifier: MIT
#include "schedule.h"

#include "hash.h"

void schedule_init(struct schedule *schedule, int64_t start_ns, int64_t period_ns,
                   int64_t duration_ns, uint64_t seed)
{
	*schedule = (struct schedule){
	    .start_ns = start_ns,
	    .period_ns = period_ns,
	    .end_ns = duration_ns ? start_ns + duration_ns : 0,
	    .seed = seed,
	};
}

// Returns when the period begins, and the one before it ends.
static int64_t begin_of(const struct schedule *schedule, uint64_t period)
{
	const int64_t begin_ns = schedule->start_ns + (int64_t)period * schedule->period_ns;

	return schedule->end_ns && begin_ns > schedule->end_ns ? schedule->end_ns : begin_ns;
}

// Returns begin + u * length, where u is uniform in [0, 1).
static int64_t due_in(const struct schedule *schedule, uint64_t period)
{
	const int64_t begin_ns = begin_of(schedule, period);
	const uint64_t length_ns = begin_of(schedule, period + 1) - begin_ns;
	const uint64_t random = hash_mix(schedule->seed, period);

	return begin_ns + (int64_t)((unsigned __int128)random * length_ns >> 64);
}

bool schedule_is_over(const struct schedule *schedule)
{
	return schedule->end_ns && begin_of(schedule, schedule->next) == schedule->end_ns;
}

int64_t schedule_due_ns(const struct schedule *schedule)
{
	return due_in(schedule, schedule->next);
}

// Returns the period in which now_ns lies; the last one if the end has passed.
static uint64_t period_at(const struct schedule *schedule, int64_t now_ns)
{
	if (schedule->end_ns && now_ns >= schedule->end_ns)
		now_ns = schedule->end_ns - 1;
	return (uint64_t)(now_ns - schedule->start_ns) / (uint64_t)schedule->period_ns;
}

uint64_t schedule_take(struct schedule *schedule, int64_t now_ns, struct stretch *ret)
{
	uint64_t last = period_at(schedule, now_ns);

	if (last > schedule->next && due_in(schedule, last) > now_ns)
		last--;
	if (last < schedule->next)
		last = schedule->next;
	const uint64_t n_missed = last - schedule->next;
	schedule->next = last + 1;
	*ret = (struct stretch){
	    .from_ns = begin_of(schedule, last),
	    .until_ns = begin_of(schedule, last + 1),
	    .due_ns = due_in(schedule, last),
	};
	return n_missed;
}

uint64_t schedule_rest(const struct schedule *schedule, int64_t now_ns, struct stretch *ret)
{
	const uint64_t last = period_at(schedule, now_ns);
	const int64_t until_ns =
	    schedule->end_ns && now_ns > schedule->end_ns ? schedule->end_ns : now_ns;

	*ret = (struct stretch){begin_of(schedule, last), until_ns, now_ns};
	return last > schedule->next ? last - schedule->next : 0;
}
