// SPDX-License-Identifier: MIT
#include "signal_timer.h"

#include <stddef.h>
#include <sys/time.h>
#include <unistd.h>

#include "clock.h"

static int signal_of(int which)
{
	switch (which) {
	case ITIMER_REAL:
		return SIGALRM;
	case ITIMER_VIRTUAL:
		return SIGVTALRM;
	default:
		return SIGPROF;
	}
}

void signal_timer_create(clockid_t clock, int signal, int which, struct signal_timer *ret)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal};

	*ret = (struct signal_timer){.signal = signal, .owner = getpid(), .which = which};
	ret->is_interval = timer_create(clock, &event, &ret->id) != 0;
	if (ret->is_interval)
		ret->signal = signal_of(which);
}

static struct timeval timeval_of(int64_t ns)
{
	const struct timespec time = clock_timespec(ns);

	return (struct timeval){.tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / NS_PER_US};
}

void signal_timer_set(const struct signal_timer *timer, int64_t first_ns, int64_t then_ns)
{
	const struct itimerspec when = {clock_timespec(then_ns), clock_timespec(first_ns)};
	const struct itimerval interval = {timeval_of(then_ns), timeval_of(first_ns)};

	if (timer->is_interval)
		setitimer(timer->which, &interval, NULL);
	else
		timer_settime(timer->id, 0, &when, NULL);
}

bool signal_timer_has_sent(const siginfo_t *info)
{
	return info->si_code == SI_TIMER || info->si_code == SI_KERNEL; // timer_create, setitimer
}
