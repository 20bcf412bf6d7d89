// SPDX-License-Identifier: MIT
#include "hold_limit.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "signal_timer.h"

enum { PARTS = 5 };

// Real-time signals are nobody's but ours: the kernel sends none. Any other would take from the
// user what it is for (SIGXCPU: a soft RLIMIT_CPU). guard.c says whose the others are.
#define CPU_SIGNAL (SIGRTMIN + 1)

static struct {
	volatile sig_atomic_t inside;
	volatile unsigned entries; // how often somebody was held; wraps around
	unsigned seen;             // its value at the timer's last signal
	int stuck;                 // signals in a row since it last changed
	struct signal_timer timer;
	struct sigaction earlier; // what the signal was to do, and whether it was blocked
	bool was_blocked;
} limit;

static void end_stuck(void)
{
	static const char text[] =
	    "profiler: a thread was held without end by a fault of the profiler, which kills "
	    "itself so that the target runs on; samples that are not in a recording or window yet "
	    "are lost; please report it\n";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0) {
		// there is nobody to be told
	}
	kill(getpid(), SIGKILL);
}

static void on_cpu_time(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	if (!signal_timer_has_sent(info))
		return; // somebody did
	if (!limit.inside || limit.entries != limit.seen)
		limit.stuck = 0;
	else if (++limit.stuck >= PARTS)
		end_stuck();
	limit.seen = limit.entries;
}

static void change_mask(int how, sigset_t *ret_earlier)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, limit.timer.signal);
	sigprocmask(how, &set, ret_earlier);
}

void hold_limit_begin(int64_t max_cpu_ns)
{
	struct sigaction action = {
	    .sa_sigaction = on_cpu_time,
	    .sa_flags = SA_RESTART | SA_SIGINFO,
	};
	sigset_t mask;

	sigemptyset(&action.sa_mask);
	signal_timer_create(CLOCK_THREAD_CPUTIME_ID, CPU_SIGNAL, ITIMER_PROF, &limit.timer);
	sigaction(limit.timer.signal, &action, &limit.earlier);
	change_mask(SIG_UNBLOCK, &mask);
	limit.was_blocked = sigismember(&mask, CPU_SIGNAL) == 1;
	signal_timer_set(&limit.timer, max_cpu_ns / PARTS, max_cpu_ns / PARTS);
}

void hold_limit_end(void)
{
	const int number = limit.timer.signal;

	if (number == 0)
		return; // it has ended
	// Ignoring it drops one that is still to come, which would end the process.
	signal_timer_set(&limit.timer, 0, 0);
	sigaction(number, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	if (limit.was_blocked)
		change_mask(SIG_BLOCK, NULL);
	sigaction(number, &limit.earlier, NULL);
	signal_timer_delete(&limit.timer);
}

void hold_limit_unblock(void)
{
	if (limit.timer.signal != 0)
		change_mask(SIG_UNBLOCK, NULL);
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
