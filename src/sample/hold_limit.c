// SPDX-License-Identifier: MIT
#include "hold_limit.h"

#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

enum { PARTS = 5 };

static struct {
	volatile sig_atomic_t inside;
	volatile unsigned entries; // how often somebody was held; wraps around
	unsigned seen;             // its value at the timer's last signal
	int stuck;                 // signals in a row since it last changed
	bool has_timer;
	timer_t timer;
} limit;

static void end_stuck(void)
{
	static const char text[] =
	    "profiler: a thread was held without end by a fault of the profiler, which kills "
	    "itself so that the target runs on; please report it\n";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0) {
		// there is nobody to be told
	}
	kill(getpid(), SIGKILL);
}

static void on_cpu_time(int number)
{
	(void)number;
	if (!limit.inside || limit.entries != limit.seen)
		limit.stuck = 0;
	else if (++limit.stuck >= PARTS)
		end_stuck();
	limit.seen = limit.entries;
}

void hold_limit_begin(int64_t max_cpu_ns)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGXCPU};
	struct sigaction action = {.sa_handler = on_cpu_time, .sa_flags = SA_RESTART};
	const struct itimerspec times = {
	    .it_interval = clock_timespec(max_cpu_ns / PARTS),
	    .it_value = clock_timespec(max_cpu_ns / PARTS),
	};
	sigset_t set;

	sigemptyset(&action.sa_mask);
	sigaction(SIGXCPU, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGXCPU);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	limit.has_timer = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &limit.timer) == 0;
	if (limit.has_timer)
		timer_settime(limit.timer, 0, &times, NULL);
}

void hold_limit_end(void)
{
	if (limit.has_timer)
		timer_delete(limit.timer);
	limit.has_timer = false;
}

void hold_limit_enter(void)
{
	limit.entries++;
	limit.inside = 1;
}

void hold_limit_leave(void)
{
	limit.inside = 0;
}
