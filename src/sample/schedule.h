// SPDX-License-Identifier: MIT
// schedule: decides when to sample, and for what stretch of time each sample stands.
//
// Time is divided into periods of equal length. Each has one tick, at a random place: ticks at
// fixed distances would always see a program that is in step with them at the same moment of its
// work. A tick stands for its whole period, wherever in it the tick falls, so that a sample's
// weight does not depend on chance: each moment is equally likely to be seen, and has the same
// weight (stratified sampling). The time since the last tick would not do as a weight: it is long
// if the tick comes late in its period, which favours what a periodic program does late in it.
//
// Where ticks cost too much, several periods have one tick together, at a random place of them all.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// All times are CLOCK_MONOTONIC.
struct schedule {
	int64_t start_ns, period_ns;
	int64_t end_ns; // 0: none is known
	uint64_t seed;  // of the random places
	uint64_t first; // the first period for which no tick stands yet
	uint64_t next;  // the first one in which the next tick may fall...
	uint64_t count; // ...and how many there are
};

// The periods that a tick stands for: those planned for it, and those whose ticks were missed. A
// thread that is new counts from from_ns on: the chance of a tick at a random place to see a thread
// is the part of the stretch in which the thread lived.
struct stretch {
	int64_t from_ns;     // the end of the last tick's, but not more than SCHEDULE_MAX_NS before
	int64_t until_ns;    // its own end
	int64_t due_ns;      // when the tick was due: the moment that its samples are to show; of
	                     // one that began late, when the sampler got its CPU
	uint64_t n_missed;   // periods whose ticks were missed
	uint64_t n_left_out; // periods that were to have no tick of their own (schedule_extend)
};

// The longest stretch that is planned, unless a period is longer.
enum { SCHEDULE_MAX_NS = 1000000000 };

// Begins the first period at start_ns; duration_ns is 0 if the end is not known. The last period
// ends with the duration, and may be shorter. Equal seeds make equal places.
void schedule_init(struct schedule *schedule, int64_t start_ns, int64_t period_ns,
                   int64_t duration_ns, uint64_t seed);

// True if the last period's tick was taken or missed.
bool schedule_is_over(const struct schedule *schedule);

// Plans only one tick from now_ns until until_ns, in whole periods and for SCHEDULE_MAX_NS at most.
// Call it after a tick was taken, before schedule_due_ns.
void schedule_extend(struct schedule *schedule, int64_t now_ns, int64_t until_ns);

// Returns when the next tick is due; the end if it is over.
int64_t schedule_due_ns(const struct schedule *schedule);

// Takes the latest tick that is due at now_ns; missed ticks are not made up. The one after it
// stands for one period.
void schedule_take(struct schedule *schedule, int64_t now_ns, struct stretch *ret);

// Tells what a last tick at now_ns would stand for: the time up to then, or to the end.
void schedule_rest(const struct schedule *schedule, int64_t now_ns, struct stretch *ret);
