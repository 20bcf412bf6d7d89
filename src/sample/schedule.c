// SPDX-License-Identifier: MIT
#include "schedule.h"

#include "hash.h"
#include "order.h"

void schedule_init(struct schedule *schedule, int64_t start_ns, int64_t period_ns,
                   int64_t duration_ns, uint64_t seed)
{
	*schedule = (struct schedule){
	    .start_ns = start_ns,
	    .period_ns = period_ns,
	    .end_ns = duration_ns ? start_ns + duration_ns : 0,
	    .seed = seed,
	    .count = 1,
	};
}

// Returns when the period begins, and the one before it ends.
static int64_t begin_of(const struct schedule *schedule, uint64_t period)
{
	const int64_t begin_ns = schedule->start_ns + (int64_t)period * schedule->period_ns;

	return schedule->end_ns && begin_ns > schedule->end_ns ? schedule->end_ns : begin_ns;
}

// Returns begin + u * length of these periods, where u is uniform in [0, 1).
static int64_t due_in(const struct schedule *schedule, uint64_t period, uint64_t count)
{
	const int64_t begin_ns = begin_of(schedule, period);
	const uint64_t length_ns = begin_of(schedule, period + count) - begin_ns;
	const uint64_t random = hash_mix(schedule->seed, period);

	return begin_ns + (int64_t)((unsigned __int128)random * length_ns >> 64);
}

bool schedule_is_over(const struct schedule *schedule)
{
	return schedule->end_ns && begin_of(schedule, schedule->next) == schedule->end_ns;
}

int64_t schedule_due_ns(const struct schedule *schedule)
{
	return due_in(schedule, schedule->next, schedule->count);
}

static int64_t min_ns(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

// Returns the period in which now_ns lies; the last one if the end has passed.
static uint64_t period_at(const struct schedule *schedule, int64_t now_ns)
{
	if (schedule->end_ns && now_ns >= schedule->end_ns)
		now_ns = schedule->end_ns - 1;
	return (uint64_t)(now_ns - schedule->start_ns) / (uint64_t)schedule->period_ns;
}

void schedule_extend(struct schedule *schedule, int64_t now_ns, int64_t until_ns)
{
	const uint64_t now = period_at(schedule, now_ns), last = period_at(schedule, until_ns - 1);
	const uint64_t most = (uint64_t)(SCHEDULE_MAX_NS / schedule->period_ns);

	if (now > schedule->next)
		schedule->next = now;
	schedule->count = order_min(last >= schedule->next ? last - schedule->next + 1 : 1, most);
	if (schedule->count == 0)
		schedule->count = 1;
}

// Describes a tick for all periods up to `last`.
static struct stretch stretch_to(const struct schedule *schedule, uint64_t last, int64_t until_ns,
                                 int64_t due_ns)
{
	const uint64_t first = order_min(schedule->first, last);
	const uint64_t n_planned = last > schedule->next ? last - schedule->next : 0;
	const uint64_t n_left_out = order_min(n_planned, schedule->count - 1);
	int64_t from_ns = begin_of(schedule, first);

	if (from_ns < until_ns - SCHEDULE_MAX_NS)
		from_ns = min_ns(begin_of(schedule, last), until_ns - SCHEDULE_MAX_NS);
	return (struct stretch){
	    .from_ns = from_ns,
	    .until_ns = until_ns,
	    .due_ns = due_ns,
	    .n_missed = last - first - n_left_out,
	    .n_left_out = n_left_out,
	};
}

void schedule_take(struct schedule *schedule, int64_t now_ns, struct stretch *ret)
{
	const uint64_t planned = schedule->next + schedule->count - 1;
	uint64_t last = period_at(schedule, now_ns);

	if (last > planned && due_in(schedule, last, 1) > now_ns)
		last--;
	const int64_t due_ns =
	    last > planned ? due_in(schedule, last, 1) : schedule_due_ns(schedule);
	if (last < planned)
		last = planned;
	*ret = stretch_to(schedule, last, begin_of(schedule, last + 1), due_ns);
	schedule->first = schedule->next = last + 1;
	schedule->count = 1;
}

void schedule_rest(const struct schedule *schedule, int64_t now_ns, struct stretch *ret)
{
	const int64_t until_ns =
	    schedule->end_ns && now_ns > schedule->end_ns ? schedule->end_ns : now_ns;

	*ret = stretch_to(schedule, period_at(schedule, now_ns), until_ns, now_ns);
}
