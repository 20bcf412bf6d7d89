// SPDX-License-Identifier: MIT
#include "hold_limit.h"

#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

enum { PARTS = 5 };

// Real-time signals are nobody's but ours: the kernel sends none. Any other would take from the
// user what it is for (SIGXCPU: a soft RLIMIT_CPU). SIGRTMIN is that of a window's writer.
#define CPU_SIGNAL (SIGRTMIN + 1)

static struct {
	volatile sig_atomic_t inside;
	volatile unsigned entries; // how often somebody was held; wraps around
	unsigned seen;             // its value at the timer's last signal
	int stuck;                 // signals in a row since it last changed
	bool has_timer;
	timer_t timer;
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
	if (info->si_code != SI_TIMER)
		return; // somebody sent it
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
	sigaddset(&set, CPU_SIGNAL);
	sigprocmask(how, &set, ret_earlier);
}

void hold_limit_begin(int64_t max_cpu_ns)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = CPU_SIGNAL};
	struct sigaction action = {
	    .sa_sigaction = on_cpu_time,
	    .sa_flags = SA_RESTART | SA_SIGINFO,
	};
	const struct itimerspec times = {
	    .it_interval = clock_timespec(max_cpu_ns / PARTS),
	    .it_value = clock_timespec(max_cpu_ns / PARTS),
	};
	sigset_t mask;

	sigemptyset(&action.sa_mask);
	sigaction(CPU_SIGNAL, &action, &limit.earlier);
	change_mask(SIG_UNBLOCK, &mask);
	limit.was_blocked = sigismember(&mask, CPU_SIGNAL) == 1;
	limit.has_timer = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &limit.timer) == 0;
	if (limit.has_timer)
		timer_settime(limit.timer, 0, &times, NULL);
}

void hold_limit_end(void)
{
	if (limit.has_timer)
		timer_delete(limit.timer);
	limit.has_timer = false;
	// Ignoring it drops one that is still to come, which would end the process.
	sigaction(CPU_SIGNAL, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	if (limit.was_blocked)
		change_mask(SIG_BLOCK, NULL);
	sigaction(CPU_SIGNAL, &limit.earlier, NULL);
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
