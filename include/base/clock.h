// SPDX-License-Identifier: MIT
// clock: time in nanoseconds.
#pragma once

#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#define NS_PER_SECOND INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_US INT64_C(1000)

// Use CLOCK_THREAD_CPUTIME_ID for the cost of something short: while a timer of the process's CPU
// time is armed, as the guard's is from its first use on, CLOCK_PROCESS_CPUTIME_ID is brought up to
// date only when the scheduler acts (timers_active, kernel/time/posix-cpu-timers.c): 300 loops of a
// quarter of a millisecond with pauses between were 8.8 ms by it, and 67.9 ms by the thread's.
static inline int64_t clock_read_ns(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) != 0)
		return -1;
	return ts.tv_sec * NS_PER_SECOND + ts.tv_nsec;
}

// CLOCK_MONOTONIC, nanoseconds since some start.
static inline int64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

// The CPU clock of process `pid`, for clock_read_ns: what clock_getcpuclockid(3) gives, without its
// system call (CPUCLOCK_SCHED, <linux/posix-timers.h>).
static inline clockid_t clock_of_process(int pid)
{
	return (clockid_t)(~(unsigned int)pid << 3 | 2);
}

static inline struct timespec clock_timespec(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / NS_PER_SECOND, .tv_nsec = ns % NS_PER_SECOND};
}

static inline int64_t clock_of_timeval(const struct timeval *time)
{
	return time->tv_sec * NS_PER_SECOND + time->tv_usec * NS_PER_US;
}

static inline double clock_seconds(int64_t ns)
{
	return (double)ns / (double)NS_PER_SECOND;
}

// Notices that the time of day was set: by NTP, by hand, or after a suspend, in which
// CLOCK_MONOTONIC stands still.

// Returns CLOCK_REALTIME - CLOCK_MONOTONIC. It changes only when the time of day is set.
int64_t clock_offset_ns(void);

// Returns by how much the time of day was set since clock_offset_ns() returned `since_ns`. 0 for
// less than a tenth of a second: the two clocks are not read at the same instant.
int64_t clock_step_ns(int64_t since_ns);
